//! Builds the patched Lua 5.1.5 beside this file. It has the part of the interface of the registry's `lua-src` that
//! `mlua` uses.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The version to build; there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Lua51,
}
pub use self::Version::Lua51;

/// A build, with the settings of the running build script.
#[derive(Debug, Default)]
pub struct Build;

/// A finished build.
#[derive(Clone, Debug)]
pub struct Artifacts {
    include_dir: PathBuf,
    lib_dir: PathBuf,
}

const LIBRARY: &str = "lua5.1";

impl Build {
    pub fn new() -> Build {
        Build
    }

    /// Compiles the sources. Panics with the reason if that fails, as build scripts do.
    pub fn build(&self, version: Version) -> Artifacts {
        let Version::Lua51 = version;
        let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("a build script has OUT_DIR"));
        let source_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua-5.1.5");
        let (lib_dir, include_dir) = (out_dir.join("lib"), out_dir.join("include"));
        fs::create_dir_all(&include_dir).expect("OUT_DIR can be written");
        let mut config = cc::Build::new();
        config.cargo_metadata(false).warnings(false).define("LUA_USE_POSIX", None);
        if cfg!(debug_assertions) {
            config.define("LUA_USE_APICHECK", None);
        }
        let mut sources: Vec<PathBuf> = fs::read_dir(&source_dir)
            .expect("the sources are beside this crate")
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
            .collect();
        sources.sort();
        config.include(&source_dir).flag_if_supported("-fno-common").files(sources);
        config.out_dir(&lib_dir).compile(LIBRARY);
        for header in ["lauxlib.h", "lua.h", "luaconf.h", "lualib.h"] {
            fs::copy(source_dir.join(header), include_dir.join(header))
                .expect("a header is copied");
        }
        Artifacts { include_dir, lib_dir }
    }
}

impl Artifacts {
    /// Tells cargo where the library is.
    pub fn print_cargo_metadata(&self) {
        println!("cargo:rustc-link-search=native={}", self.lib_dir.display());
        println!("cargo:rustc-link-lib=static={LIBRARY}");
        println!("cargo:include={}", self.include_dir.display());
        println!("cargo:lib={}", self.lib_dir.display());
    }
}
