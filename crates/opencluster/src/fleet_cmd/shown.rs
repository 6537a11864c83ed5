//! Numbers and tables as people read them.

/// Formats `1536` as `1.5 KB`.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut scaled = count * 10;
    while scaled >= 10_240 && unit < UNITS.len() - 1 {
        scaled /= 1024;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ => format!("{}.{} {}", scaled / 10, scaled % 10, UNITS[unit]),
    }
}

/// Formats `1234567` as `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Parses a size as people write it: `100mb`, `64 KB`, `1000`.
pub(super) fn size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits =
        text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    let unit: u64 = match text[digits.len()..].trim() {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Formats rows under a head, columns as wide as necessary, the first one left-aligned.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            if column == 0 {
                line.push_str(&format!("{cell:<width$}"));
            } else {
                line.push_str(&format!("  {cell:>width$}"));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_short() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1536), "1.5 KB");
        assert_eq!(bytes(100 << 20), "100.0 MB");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123_456), "123,456");
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(size("1000"), Some(1000));
        assert_eq!(size("64kb"), Some(64 << 10));
        assert_eq!(size("100 MB"), Some(100 << 20));
        for text in ["", "mb", "1xb", "-1", "99999999999gb"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "10".to_owned()], vec!["bcd".to_owned(), "7".to_owned()]];
        assert_eq!(table(&rows), "a    10\nbcd   7\n");
    }
}
