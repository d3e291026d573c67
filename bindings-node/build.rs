//! Build: the linker learns that Node itself has the symbols of its API.

fn main() {
    napi_build::setup();
}
