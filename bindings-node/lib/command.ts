#!/usr/bin/env node
// The command `locktender`: its help says what it does.

import { addon } from './addon.js'

process.exit(addon.command(process.argv.slice(1)))
