//! Encodes outgoing requests, for the load generator, the command line and the fleet's proxy.

/// Appends one request: an array of bulk strings, which every version of the protocol understands.
pub fn encode_command(out: &mut Vec<u8>, args: &[&[u8]]) {
    const HEADER_BYTES_MAX: usize = 1 + 20 + 2 + 2;
    out.reserve(
        args.iter().map(|arg| arg.len() + HEADER_BYTES_MAX).sum::<usize>() + HEADER_BYTES_MAX,
    );
    let mut digits = itoa::Buffer::new();
    out.push(b'*');
    out.extend_from_slice(digits.format(args.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    for arg in args {
        out.push(b'$');
        out.extend_from_slice(digits.format(arg.len()).as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut out = Vec::new();
        encode_command(&mut out, &[b"SET", b"k", b""]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
    }
}
