//! Links on which the losing side of a split, or a node that returns too late, hands over the data that the
//! other side lacks (`cluster::merge`): questions one way, answers the other, one at a time. `crate::merge`
//! asks and answers.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use cluster::map::Endpoints;
use cluster::merge::{MergeReply, MergeRequest, MergeTaker};
use cluster::replication::FRAME_BYTES_MAX;

use super::handshake::Timed;
use super::hello::{HandshakeRefusal, Hello, HelloError, Purpose};
use super::{LinkMaker, PeerContext, dialer, frame};

/// Timeout of an answer: it waits for backups, and one of those may have to be dropped first.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Timeout after which a link without questions is closed.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// A link to a node of the surviving side.
pub(crate) struct MergeLink(TcpStream);

impl MergeLink {
    /// Sends a question, and waits for the answer.
    pub(crate) fn ask(&self, question: &MergeRequest) -> io::Result<MergeReply> {
        let mut timed = Timed::within(&self.0, ANSWER_MAX);
        frame::send(&mut timed, question, FRAME_BYTES_MAX)?;
        frame::receive(&mut timed, FRAME_BYTES_MAX)
    }
}

impl LinkMaker {
    /// Makes a link to the node at that address, if it is of a greater generation of this cluster, or
    /// has this process as a member.
    pub(crate) fn for_merging(&self, at: &Endpoints) -> Result<MergeLink, HelloError> {
        let roster =
            self.0.roster.load_full().ok_or(HelloError::Refused(HandshakeRefusal::NotJoined))?;
        let stream = dialer::connect(&at.host, at.peer).map_err(HelloError::Io)?;
        let (cluster, generation) = (Some(roster.cluster), Some(roster.generation));
        let (purpose, to, at) = (Purpose::Merge, None, None);
        let hello = Hello { purpose, from: roster.me, to, cluster, generation, at };
        let (_, stream) = dialer::introduce(stream, &self.0.secret, hello)?;
        Ok(MergeLink(stream))
    }
}

/// Answers questions at the accepting end until the link is closed.
pub(super) fn answer(context: &PeerContext, stream: &TcpStream) -> io::Result<()> {
    let mut taker = MergeTaker::default();
    loop {
        let question = frame::receive(&mut Timed::within(stream, IDLE_MAX), FRAME_BYTES_MAX);
        let question: MergeRequest = match question {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            question => question?,
        };
        let Some(reply) = context.data.merge(question, &mut taker) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "invalid merge request"));
        };
        frame::send(&mut Timed::new(stream), &reply, FRAME_BYTES_MAX)?;
    }
}
