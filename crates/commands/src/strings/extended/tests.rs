//! Tests of sums of floating-point numbers, digit by digit as with an x86 long double.

use super::*;
use placement::SplitMix64;

fn sum(a: &str, b: &str) -> Option<String> {
    let (a, b) = (Extended::parse(a.as_bytes())?, Extended::parse(b.as_bytes())?);
    a.plus(b).filter(|sum| sum.is_finite()).map(Extended::to_text)
}

#[test]
fn sums_have_the_digits_that_redis_prints() {
    // Each line is a result of redis-server 7.0.15 on x86-64.
    let sums = [
        ("0.1", "0.2", "0.3"),
        ("3.0", "1.1", "4.1"),
        ("10.50", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("1e30", "0.3", "1000000000000000000024696061952"),
        ("-1.5", "1.5", "0"),
        ("-0", "-0", "0"),
        ("0x1p3", "0x.8", "8.5"),
        ("1e-18", "-1e-18", "0"),
        ("4e-18", "0", "0"),
        ("6e-18", "0", "0.00000000000000001"),
        ("-4e-18", "0", "0"),
        ("18446744073709551616", "1", "18446744073709551616"),
        ("9223372036854775807", "1", "9223372036854775808"),
    ];
    for (a, b, expected) in sums {
        assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} + {b}");
    }
}

#[test]
fn what_strtold_does_not_take_is_no_number() {
    for text in
        ["", " 1", "1 ", ".", "1e", "e5", "0x", "0x1p", "--1", "+-1", "nan", "1e4933", "1e-4960"]
    {
        assert_eq!(Extended::parse(text.as_bytes()), None, "{text}");
    }
    assert_eq!(Extended::parse(&[b'1'; TEXT_BYTES_MAX + 1]), None);
}

#[test]
fn the_edges_of_the_range_are_where_they_are_in_hardware() {
    let greatest = "0x1.fffffffffffffffep16383";
    assert!(Extended::parse(greatest.as_bytes()).is_some_and(Extended::is_finite));
    assert_eq!(sum(greatest, greatest), None);
    assert_eq!(Extended::parse(b"0x1p16384"), None);
    assert!(Extended::parse(b"0x1p-16445").is_some());
    assert_eq!(Extended::parse(b"0x1p-16446"), None, "half of the least number rounds to zero");
    assert_eq!(sum("inf", "1"), None);
    assert_eq!(sum("inf", "-inf"), None);
}

#[test]
fn decimal_and_hexadecimal_digits_of_one_number_agree() {
    for (decimal, hexadecimal) in [
        ("0.1", "0xc.ccccccccccccccdp-7"),
        ("123456789012345678901234567890", "0x18EE90FF6C373E0EE4E3F0AD2p0"),
        ("1e22", "0x21e19e0c9bab2400000p0"),
    ] {
        let [a, b] = [decimal, hexadecimal].map(|text| Extended::parse(text.as_bytes()));
        assert!(a.is_some() && a == b, "{decimal}");
    }
}

#[test]
fn a_number_printed_in_full_is_read_back_as_itself() {
    let mut rng = SplitMix64::new(7);
    for _ in 0..500 {
        let mantissa = rng.draw() | 1 << 63;
        let exponent = i32::try_from(rng.draw() % 1_000).unwrap();
        let number =
            Extended { negative: false, magnitude: Magnitude::Finite { exponent, mantissa } };
        assert_eq!(Extended::parse(number.to_text().as_bytes()), Some(number));
    }
}
