// A dashboard as Grafana's own types describe it: what its panels may have, by the kind of panel.

import type { AxisConfig, Dashboard, DataSourceRef, FieldConfig, GraphFieldConfig, Panel, RowPanel, TableFieldOptions } from '@grafana/schema'
import type { Options as BarGauge } from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen'
import type { Options as Stat } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen'
import type { FieldConfig as Band, Options as Timeline } from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen'
import type { Options as Table } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen'
import type { Options as TimeSeries } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen'

/** The same type with texts instead of enumerations: JSON has no others. */
type Plain<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T : unknown extends T ? T : { [K in keyof T]: Plain<T[K]> }

interface Prometheus { refId: string, expr: string, legendFormat: string, range: boolean, instant: boolean, format: 'time_series' | 'table' }
interface InfluxQL { refId: string, query: string, rawQuery: true, resultFormat: 'time_series' | 'table', alias: string }

type PanelOf<Kind extends string, Options, Custom> = Required<Pick<Panel, 'id' | 'title' | 'description' | 'gridPos'>> & Pick<Panel, 'transformations' | 'interval'> & {
  type: Kind
  datasource: DataSourceRef
  options: Options
  fieldConfig: { defaults: Omit<FieldConfig, 'custom'> & { custom: Custom }, overrides: NonNullable<Panel['fieldConfig']>['overrides'] }
  targets: Array<Prometheus | InfluxQL>
}

type OurPanel =
  | PanelOf<'stat', Stat, Record<string, never>>
  | PanelOf<'timeseries', TimeSeries, GraphFieldConfig>
  | PanelOf<'bargauge', BarGauge, Record<string, never>>
  | PanelOf<'state-timeline', Timeline, Band & AxisConfig>
  | PanelOf<'table', Table, Partial<TableFieldOptions>>
  | RowPanel

export type OurDashboard = Plain<Required<Pick<Dashboard, 'uid' | 'title' | 'description'>> & Omit<Dashboard, 'panels'> & { panels: OurPanel[] }>
