//! One command, one reply, over a blocking socket: for PING, INFO and the like, never for load.
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::request;

const REPLY_WAIT_MAX: Duration = Duration::from_secs(30);

pub struct Client {
    stream: TcpStream,
}

impl Client {
    pub fn connect(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(REPLY_WAIT_MAX))?;
        Ok(Client { stream })
    }

    /// Sends a command and returns the raw reply, including its type byte. An error reply is an error.
    pub fn call(&mut self, words: &[&str]) -> io::Result<Vec<u8>> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.stream.write_all(&request::encode(&words))?;
        let mut reply = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            reply.extend_from_slice(&chunk[..count]);
            let end = resp::skip_reply(&reply, 0)
                .map_err(|error| io::Error::other(format!("cannot parse the reply: {error}")))?;
            match end {
                Some(_) if reply[0] == b'-' => {
                    return Err(io::Error::other(String::from_utf8_lossy(&reply).into_owned()));
                }
                Some(_) => return Ok(reply),
                None => {}
            }
        }
    }

    /// Returns the value of `field` in a section of INFO, if the server has it.
    pub fn info(&mut self, section: &str, field: &str) -> io::Result<Option<String>> {
        let reply = self.call(&["INFO", section])?;
        Ok(info_field(&String::from_utf8_lossy(&reply), field).map(str::to_owned))
    }
}

fn info_field<'a>(info: &'a str, field: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_info_field_is_found_by_its_whole_name() {
        let info = "$70\r\n# Memory\r\nused_memory_human:1M\r\nused_memory:1048576\r\n";
        assert_eq!(info_field(info, "used_memory"), Some("1048576"));
        assert_eq!(info_field(info, "memory"), None);
    }
}
