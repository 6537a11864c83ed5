//! Construction of commands and their arguments: keys, values, numbers, nonsense.
use std::ops::{Deref, DerefMut};

use e2e::Rng;

use crate::lockstep::Args;

/// A generator of commands.
pub(crate) struct Gen(Rng);

impl Deref for Gen {
    type Target = Rng;
    fn deref(&self) -> &Rng {
        &self.0
    }
}

impl DerefMut for Gen {
    fn deref_mut(&mut self) -> &mut Rng {
        &mut self.0
    }
}

/// Begins a command with these words, separated by spaces; `arg` and `maybe` add the rest.
pub(crate) fn cmd(words: &str) -> Command {
    Command(words.split(' ').map(|word| word.as_bytes().to_vec()).collect())
}

pub(crate) struct Command(Args);

impl Command {
    pub(crate) fn arg(mut self, arg: impl Into<Vec<u8>>) -> Command {
        self.0.push(arg.into());
        self
    }

    pub(crate) fn num(self, number: impl std::fmt::Display) -> Command {
        self.arg(number.to_string())
    }

    pub(crate) fn args(mut self, args: impl IntoIterator<Item = Vec<u8>>) -> Command {
        self.0.extend(args);
        self
    }

    pub(crate) fn words(self, words: &str) -> Command {
        self.args(words.split_whitespace().map(|word| word.as_bytes().to_vec()))
    }

    pub(crate) fn done(self) -> Args {
        self.0
    }
}

const KEYS: [&str; 22] = [
    "a",
    "b",
    "c",
    "key:1",
    "{t}1",
    "{t}2",
    "x{t}",
    "{}",
    "",
    "k\0\n\u{e9}",
    "h1",
    "h2",
    "l1",
    "l2",
    "z1",
    "z2",
    "{t}z",
    "s1",
    "s2",
    "x1",
    "x2",
    "{t}x",
];

const NONSENSE: [&str; 18] = [
    "",
    "abc",
    "-1",
    "0",
    "1.5",
    " 3",
    "3 ",
    "+7",
    "007",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "99999999999",
    "NX",
    "KEEPTTL",
    "a\r\nb",
    "\u{e9}",
    "nan",
];

/// Every command of the node, for calls with too few and too many arguments. SPOP is missing: it removes random members.
const NAMES: &str = "set get getset getdel getex setnx setex psetex mget mset msetnx append strlen \
    getrange substr setrange incr decr incrby decrby incrbyfloat lcs setbit getbit bitcount bitpos \
    bitop bitfield bitfield_ro pfadd pfcount pfmerge pfdebug geoadd geodist geohash geopos georadius \
    georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore sort sort_ro hset hsetnx hmset hget hmget hgetall hkeys hvals hlen hstrlen hexists \
    hdel hincrby hincrbyfloat hrandfield hscan \
    lpush rpush lpushx rpushx lpop rpop llen lrange lindex lset linsert lrem ltrim lpos lmove rpoplpush lmpop \
    zadd zincrby zrem zcard zscore zmscore zcount zlexcount zrange zrangestore zrevrange zrangebyscore \
    zrevrangebyscore zrangebylex zrevrangebylex zremrangebyrank zremrangebyscore zremrangebylex zpopmin \
    zpopmax zmpop zrandmember zscan zunion zunionstore zinter zinterstore zintercard zdiff zdiffstore sadd scard sdiff sdiffstore sinter sintercard \
    sinterstore sismember smembers smismember smove srandmember srem sscan sunion sunionstore \
    del unlink exists touch type rename renamenx copy expire pexpire \
    expireat pexpireat ttl pttl expiretime pexpiretime persist keys scan randomkey dbsize flushall \
    flushdb move swapdb object dump restore multi exec discard watch unwatch publish spublish pubsub ping echo \
    hello auth select reset role client command config info time memory slowlog latency debug wait \
    xadd xlen xrange xrevrange xdel xtrim xread xreadgroup xack xclaim xpending xsetid xgroup xinfo \
    lolwut no-such-command nosuch|sub";

impl Gen {
    pub(crate) fn new(rng: Rng) -> Gen {
        Gen(rng)
    }

    pub(crate) fn key(&mut self) -> Vec<u8> {
        // The first few are drawn more often, so that commands meet on them.
        let index = if self.one_in(3) { self.index(KEYS.len()) } else { self.index(4) };
        KEYS[index].as_bytes().to_vec()
    }

    pub(crate) fn some_keys(&mut self, max: usize) -> Vec<Vec<u8>> {
        let count = 1 + self.index(max);
        (0..count).map(|_| self.key()).collect()
    }

    pub(crate) fn value(&mut self) -> Vec<u8> {
        match self.below(12) {
            0..3 => self.integer().into_bytes(),
            3 => self.float().into_bytes(),
            4 => Vec::new(),
            5 => b"hello world".to_vec(),
            // Around the length at which Redis changes the encoding.
            6 => vec![b'e'; 43 + self.index(4)],
            7 => b"abcabcabc".repeat(1 + self.index(60)),
            8 => (0..self.index(80)).map(|_| self.byte()).collect(),
            9 => self.pick(&["ohmytext", "mynewtext", "foobar", "\u{fc}ber"]).as_bytes().to_vec(),
            10 => b"line\r\nline\0".to_vec(),
            _ => vec![self.byte()],
        }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).expect("below 256")
    }

    pub(crate) fn integer(&mut self) -> String {
        match self.below(8) {
            0 => i64::MAX.to_string(),
            1 => i64::MIN.to_string(),
            2 => (i64::MAX - 5).to_string(),
            3 => "9223372036854775808".into(),
            4 => "0".into(),
            5 => format!("-{}", 1 + self.below(100)),
            6 => self.below(1_000_000).to_string(),
            _ => self.below(20).to_string(),
        }
    }

    pub(crate) fn float(&mut self) -> String {
        let usual = ["0.1", "-0.1", "3.0", "1.5", "0.2", "10.50", "5.0e3", "-2.5e-3", "100", "-7"];
        let odd = ["1e17", "1e-10", "inf", "-inf", "nan", "0x10", "1.", ".5", "1e400", "-0", " 1"];
        let index = if self.one_in(4) { &odd[..] } else { &usual[..] };
        self.pick(index).to_owned()
    }

    /// Returns a small index, often beyond one of the ends.
    pub(crate) fn position(&mut self) -> i64 {
        let near = i64::try_from(self.below(40)).expect("below 40") - 20;
        match self.below(8) {
            0 => 0,
            1 => -1,
            2 => near * 1000,
            _ => near,
        }
    }

    /// Returns seconds that outlive the test, or a value that no command accepts.
    pub(crate) fn seconds(&mut self) -> String {
        match self.below(16) {
            0 => self.pick(&["0", "-1", "abc", "1.5", ""]).to_owned(),
            1 => self
                .pick(&["9223372036854775807", "9223372036854775", "-9223372036854775808"])
                .to_owned(),
            _ => (10_000 + self.below(100_000_000)).to_string(),
        }
    }

    pub(crate) fn millis(&mut self) -> String {
        match self.below(16) {
            0 => self.pick(&["0", "-1", "abc", "1.5", ""]).to_owned(),
            1 => self.pick(&["9223372036854775807", "-9223372036854775808"]).to_owned(),
            _ => (10_000_000 + self.below(100_000_000_000)).to_string(),
        }
    }

    /// Returns a time far in the future, in Unix seconds, or a value that no command accepts.
    pub(crate) fn unix_seconds(&mut self) -> String {
        match self.below(16) {
            0 => self.pick(&["0", "-1", "abc", "9223372036854775807"]).to_owned(),
            _ => (4_000_000_000 + self.below(100_000_000)).to_string(),
        }
    }

    pub(crate) fn unix_millis(&mut self) -> String {
        match self.below(16) {
            0 => self.pick(&["0", "-1", "abc", "9223372036854775807"]).to_owned(),
            _ => (4_000_000_000_000 + self.below(100_000_000_000)).to_string(),
        }
    }

    pub(crate) fn nonsense(&mut self) -> Vec<u8> {
        self.pick(&NONSENSE).as_bytes().to_vec()
    }

    /// Returns the same word in random case.
    pub(crate) fn cased(&mut self, word: &str) -> String {
        match self.below(4) {
            0 => word.to_lowercase(),
            1 => word
                .chars()
                .map(|c| if self.one_in(2) { c } else { c.to_ascii_lowercase() })
                .collect(),
            _ => word.to_owned(),
        }
    }

    /// Returns some of these options, sometimes none, sometimes conflicting ones.
    pub(crate) fn options(&mut self, words: &[&str]) -> Args {
        let mut chosen = Vec::new();
        while chosen.len() < 3 && self.one_in(2) {
            let word = self.pick(words);
            chosen.push(self.cased(word).into_bytes());
        }
        chosen
    }

    pub(crate) fn wrong_arity(&mut self) -> Args {
        let names: Vec<&str> = NAMES.split_whitespace().collect();
        let name = self.pick(&names);
        let count = self.index(4);
        // None of these commands stops the server or closes a connection.
        let command = Command(vec![self.cased(name).into_bytes()]);
        command.args((0..count).map(|_| self.key()).collect::<Args>()).done()
    }
}
