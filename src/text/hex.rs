//! Bytes as lower-case hex digits: hashes, and words that nobody can guess.

use sha2::{Digest as _, Sha256};

const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]).collect()
}

/// The SHA-256 of `bytes`, 64 digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A word of `BYTES` random bytes.
///
/// # Errors
/// When the system has no randomness.
pub fn random<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_keep_their_order_and_their_zeros() {
        assert_eq!(hex(&[0x00, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(&sha256(b"")[..8], "e3b0c442");
    }

    #[test]
    fn no_random_word_comes_twice() {
        let word = || random::<16>().expect("randomness");
        let (first, second) = (word(), word());
        assert!(first.len() == 32 && first != second);
    }
}
