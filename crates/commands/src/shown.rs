//! A command's arguments for the slow log and for monitors, with passwords hidden.

use settings::find;

use crate::{Args, Spec};

const HIDDEN: &[u8] = b"(redacted)";

/// Returns the arguments, with secrets replaced.
pub fn visible_args<'a>(spec: &Spec, args: Args<'a>) -> Vec<&'a [u8]> {
    let is_secret = |index: usize| match spec.full_name {
        "auth" => index > 0,
        "hello" => follows_auth(args, index),
        "config|set" => index >= 3 && is_secret_setting(args.at(index - 1)),
        _ => false,
    };
    args.iter().enumerate().map(|(at, arg)| if is_secret(at) { HIDDEN } else { arg }).collect()
}

/// Returns whether the argument is one of the two words after AUTH, as in HELLO 3 AUTH user password.
fn follows_auth(args: Args<'_>, index: usize) -> bool {
    let is_auth = |at: usize| args.at(at).eq_ignore_ascii_case(b"auth");
    (index >= 3 && is_auth(index - 1)) || (index >= 4 && is_auth(index - 2))
}

fn is_secret_setting(name: &[u8]) -> bool {
    core::str::from_utf8(name).ok().and_then(find).is_some_and(|setting| setting.is_secret())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OwnedArgs, Table};

    #[test]
    fn passwords_are_hidden_wherever_they_stand() {
        let table = Table::default();
        let shown = |line: &str| {
            let args = OwnedArgs::new(line.split(' ').map(str::as_bytes));
            let spec = table.find(args.args().at(0)).expect("a command");
            let spec = spec.subcommand(args.args().at(1)).unwrap_or(spec);
            let shown = visible_args(spec, args.args());
            shown
                .into_iter()
                .map(|arg| String::from_utf8_lossy(arg).into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(shown("AUTH default secret"), "AUTH (redacted) (redacted)");
        assert_eq!(
            shown("HELLO 3 AUTH default secret SETNAME me"),
            "HELLO 3 AUTH (redacted) (redacted) SETNAME me"
        );
        assert_eq!(
            shown("CONFIG SET maxmemory 1 requirepass secret"),
            "CONFIG SET maxmemory 1 requirepass (redacted)"
        );
        assert_eq!(shown("SET auth secret"), "SET auth secret");
    }
}
