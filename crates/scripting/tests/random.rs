//! Random texts and bytes through the compiler and the libraries: nothing crashes, and what is packed is unpacked.
#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use resp::{Output, Protocol, Reply};
use scripting::{
    Called, CommandArgs, Commands, Held, Interpreter, Job, LogLevel, NodeScripts, ScriptId,
};

struct Nothing;

impl Commands for Nothing {
    fn call(
        &mut self,
        _: &CommandArgs,
        protocol: Protocol,
        _: &mut dyn FnMut() -> bool,
        reply: &mut Output,
    ) -> Called {
        Reply::new(reply, protocol).ok();
        Called::Replied
    }

    fn may_run(&mut self, _: &CommandArgs) -> Option<bool> {
        None
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}
}

/// Runs a script with these arguments; returns whether it has succeeded.
fn run(script: &[u8], argv: &[&[u8]]) -> bool {
    let node: Arc<NodeScripts> = Arc::default();
    let mut output = Output::default();
    let job = Job {
        id: ScriptId::of(script),
        text: script,
        shebang: 0,
        held: Held::All,
        threshold: Duration::from_secs(5),
        keys: Vec::new(),
        argv: argv.to_vec(),
    };
    let mut reply = Reply::new(&mut output, Protocol::Resp2);
    Interpreter::of_this_thread().unwrap().run(&job, &node, &mut Nothing, &mut reply).is_ok()
}

/// A text that looks like a program.
fn program() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "local", "x", "=", "function", "end", "(", ")", "{", "}", "return", "if", "then", "[[",
        "]]", "'a'", "1", "nil", "..", "#", ",", "redis", ".", "call", "pcall", "for", "do", "in",
        "pairs", "\n", "--", "[=[", "~=", "not", "string", "rep", "goto", "0x", "1e9", "\\", ";",
    ]);
    prop::collection::vec(word, 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_program_ends_or_is_refused(text in program()) {
        run(text.as_bytes(), &[]);
    }

    #[test]
    fn the_libraries_read_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60), format in "[<>! 0-9a-zA-Z]{0,12}") {
        run(b"return pcall(cjson.decode, ARGV[1])", &[&bytes]);
        run(b"return pcall(cmsgpack.unpack, ARGV[1])", &[&bytes]);
        run(b"return pcall(struct.unpack, ARGV[2], ARGV[1])", &[&bytes, format.as_bytes()]);
        run(b"return pcall(struct.pack, ARGV[2], 1, 'abc', 2.5, 'x', ARGV[1])", &[&bytes, format.as_bytes()]);
        run(b"return pcall(string.find, ARGV[1], ARGV[2])", &[&bytes, &bytes]);
        run(b"return loadstring(ARGV[1])", &[&bytes]);
    }

    #[test]
    fn what_is_packed_is_unpacked(text in prop::collection::vec(any::<u8>(), 0..300), number in any::<f64>(), integer in any::<i32>()) {
        let script = b"local s, f, i = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
            local v = {s, i, {a = s, b = {true, false, i}}}
            local function same(a, b)
                if type(a) ~= 'table' then return a == b end
                for k in pairs(a) do if not same(a[k], b[k]) then return false end end
                for k in pairs(b) do if a[k] == nil then return false end end
                return true
            end
            assert(same(cmsgpack.unpack(cmsgpack.pack(v)), v), 'cmsgpack')
            assert(same(cjson.decode(cjson.encode(v)), v), 'cjson')
            assert(f ~= f or cmsgpack.unpack(cmsgpack.pack(f)) == f, 'number')
            local a, b, c = struct.unpack('>i4<dI2c0', struct.pack('>i4<dI2c0', i, f, #s, s))
            assert(a == i and (f ~= f or b == f) and c == s, 'struct')
            return bit.tobit(i) == i and 1 or error('bit')";
        let number = if number.is_finite() { format!("{number:e}") } else { "0".to_owned() };
        prop_assert!(run(script, &[&text, number.as_bytes(), integer.to_string().as_bytes()]));
    }
}
