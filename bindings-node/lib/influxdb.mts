export * from './influxdb.js'
