// Long: the options of a test that runs in `tests/run all` only. tests/README.md says what belongs there.

export const long = process.env.LOCKTENDER_LONG ? {} : { skip: 'long: it runs in `tests/run all`' }
