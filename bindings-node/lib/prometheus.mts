export * from './prometheus.js'
