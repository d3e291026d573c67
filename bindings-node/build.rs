//! Tells the linker that Node itself brings the symbols of its API.

fn main() {
    napi_build::setup();
}
