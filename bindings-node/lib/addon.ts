import type * as native from '../native/index.js'

// The platforms of package.json's `napi.targets`; on Linux with glibc or with musl.
const builds = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64', 'win32-x64']

/** The compiled half of the package. @internal */
export const addon = load()

function load(): typeof native {
  try {
    // Bundlers find a package that is required by a literal name.
    return require('../native/index.js') as typeof native
  } catch (cause) {
    throw new Error(whyMissing(process.platform, process.arch), { cause })
  }
}

function whyMissing(platform: string, arch: string): string {
  const here = `${platform}-${arch}`
  if (!builds.includes(here)) return `locktender has no build for ${here}; there are builds for ${builds.join(', ')}`
  return (
    `locktender's build for ${here} can't be loaded, and the cause says why. It is an optional dependency, @locktender/binding-${here}…: ` +
    'install with optional dependencies, on the platform that runs the program. A bundler must leave locktender out: mark it as external'
  )
}
