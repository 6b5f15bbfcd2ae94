//! Has the dynamic linker run this library's constructor before every other one, and has the library find its own
//! functions though another one of the same name comes first: tcmalloc's `munmap` calls `syscall`, which is ours and
//! calls `munmap`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,initfirst");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
