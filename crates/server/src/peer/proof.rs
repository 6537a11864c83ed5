//! Proof of knowing the shared secret, without sending it. Used by `handshake.rs`.
//!
//! Each side draws a nonce. A proof is an HMAC-SHA256 over everything both have sent, under the role of the
//! prover, so that it can neither be replayed nor be sent back to its maker.

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use settings::Secret;
use sha2::Sha256;

use super::random;

/// A number used once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Nonce([u8; 32]);

impl Nonce {
    pub(super) fn draw() -> Nonce {
        Nonce(random::bytes())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Proof([u8; 32]);

/// The role of the prover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProverRole {
    Dialer,
    Acceptor,
    /// The acceptor, for a link that it refuses: the proof must not be mistaken for a welcome.
    Refuser,
}

impl ProverRole {
    fn label(self) -> &'static [u8] {
        match self {
            ProverRole::Dialer => b"opencluster dialer",
            ProverRole::Acceptor => b"opencluster acceptor",
            ProverRole::Refuser => b"opencluster refuser",
        }
    }
}

/// Returns the proof that the holder of this role has sent these messages and knows the secret.
pub(super) fn prove(secret: &Secret, role: ProverRole, said: &[&[u8]]) -> Proof {
    Proof(digest(secret, role, said).finalize().into_bytes().into())
}

/// Checks a proof, in constant time.
pub(super) fn is_proven(secret: &Secret, role: ProverRole, said: &[&[u8]], proof: &Proof) -> bool {
    digest(secret, role, said).verify_slice(&proof.0).is_ok()
}

fn digest(secret: &Secret, role: ProverRole, said: &[&[u8]]) -> Hmac<Sha256> {
    let key = secret.expose().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in [role.label()].iter().chain(said) {
        // Each part with its length, so that no other parts give the same bytes.
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_its_secret_its_role_and_its_words_only() {
        let secret = Secret::new("s3cret");
        let proof = prove(&secret, ProverRole::Dialer, &[b"ab", b"c"]);
        assert!(is_proven(&secret, ProverRole::Dialer, &[b"ab", b"c"], &proof));
        assert!(!is_proven(&Secret::new("s3cret "), ProverRole::Dialer, &[b"ab", b"c"], &proof));
        assert!(!is_proven(&secret, ProverRole::Acceptor, &[b"ab", b"c"], &proof));
        assert!(!is_proven(&secret, ProverRole::Refuser, &[b"ab", b"c"], &proof));
        assert!(!is_proven(&secret, ProverRole::Dialer, &[b"a", b"bc"], &proof));
        assert!(!is_proven(&secret, ProverRole::Dialer, &[b"abc"], &proof));
    }

    #[test]
    fn an_empty_secret_is_a_secret_too() {
        let proof = prove(&Secret::default(), ProverRole::Dialer, &[]);
        assert!(is_proven(&Secret::default(), ProverRole::Dialer, &[], &proof));
        assert!(!is_proven(&Secret::new("x"), ProverRole::Dialer, &[], &proof));
    }

    #[test]
    fn no_nonce_comes_twice() {
        assert_ne!(Nonce::draw(), Nonce::draw());
    }
}
