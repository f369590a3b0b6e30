//! What a plain scalar means to the Go YAML library of the Kubernetes tools: YAML 1.1 with its own exceptions.

/// What a plain scalar is.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// Empty, `~`, `null`.
    Null,
    /// Any of the eleven spellings of yes and no.
    Bool(bool),
    /// An integer in base 2, 8, 10 or 16, with underscores anywhere.
    Int(i128),
    /// A decimal number, or one of the three that are none.
    Float(f64),
    /// Everything else, dates included.
    String,
}

/// Resolves a plain scalar.
pub fn resolve(text: &str) -> Scalar {
    let Some(first) = text.bytes().next() else { return Scalar::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => special_float(text).or_else(|| decimal(text)).map_or(Scalar::String, Scalar::Float),
        b'+' | b'-' | b'0'..=b'9' => number(text),
        _ => Scalar::String,
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        _ => Scalar::String,
    }
}

fn special_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn number(text: &str) -> Scalar {
    if let Some(float) = special_float(text) {
        return Scalar::Float(float);
    }
    // A date is recognised and then kept as the string it is.
    if text.bytes().take(4).all(|byte| byte.is_ascii_digit()) && text.as_bytes().get(4) == Some(&b'-') {
        return Scalar::String;
    }
    let plain = text.replace('_', "");
    match integer(&plain) {
        Some(integer) => Scalar::Int(integer),
        None => decimal(&plain).map_or(Scalar::String, Scalar::Float),
    }
}

/// Go's `ParseInt(_, 0, 64)`: a sign, then `0x`, `0o`, `0b` or a lone `0` choose the base.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let prefixed = |lower: &str, upper: &str| digits.strip_prefix(lower).or_else(|| digits.strip_prefix(upper));
    let (digits, base) = if let Some(rest) = prefixed("0x", "0X") {
        (rest, 16)
    } else if let Some(rest) = prefixed("0o", "0O") {
        (rest, 8)
    } else if let Some(rest) = prefixed("0b", "0B") {
        (rest, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (digits.get(1..)?, 8)
    } else {
        (digits, 10)
    };
    // A second sign is no digit; no digits at all are no number below.
    if !digits.bytes().all(|digit| (digit as char).is_digit(base)) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, base).ok()?;
    let value = if negative { -magnitude } else { magnitude };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value).then_some(value)
}

/// Digits with an optional point and exponent.
fn decimal(text: &str) -> Option<f64> {
    // The parser takes the words `inf` and `nan` too, and Go treats an overflowing number as a string: none of them is finite.
    text.parse().ok().filter(|float: &f64| float.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row was produced with the Go library itself.
    #[test]
    fn reads_plain_scalars_as_kubectl_does() {
        use Scalar::*;
        for (text, want) in [
            ("", Null),
            ("~", Null),
            ("null", Null),
            ("nULL", String),
            ("y", Bool(true)),
            ("on", Bool(true)),
            ("No", Bool(false)),
            ("yEs", String),
            ("0", Int(0)),
            ("123", Int(123)),
            ("+7", Int(7)),
            ("-0b11", Int(-3)),
            ("0644", Int(420)),
            ("0o7", Int(7)),
            ("08", Float(8.0)),
            ("0x1f", Int(31)),
            ("0b1", Int(1)),
            ("1_000", Int(1000)),
            ("1e3", Float(1000.0)),
            ("1e400", String),
            ("0888", Float(888.0)),
            (".5", Float(0.5)),
            ("1.", Float(1.0)),
            (".", String),
            ("1.2.3", String),
            ("12:30:45", String),
            ("2001-01-01", String),
            ("2001", Int(2001)),
            ("2001-", String),
            ("200-1", String),
            ("20011-", String),
            ("1-e5", String),
            ("0b", String),
            ("0o", String),
            ("0B101", Int(5)),
            ("0O17", Int(15)),
            ("0X1F", Int(31)),
            ("-5", Int(-5)),
            ("--5", String),
            ("+-5", String),
            ("0x-5", String),
            ("-9223372036854775808", Int(i64::MIN as i128)),
            ("-9223372036854775809", Float(-9223372036854775809.0)),
            ("18446744073709551616", Float(18446744073709551616.0)),
            ("1.5e3", Float(1500.0)),
            ("1.5e-1", Float(0.15)),
            ("-1.5E+1", Float(-15.0)),
            ("+inf", String),
            ("-nan", String),
            ("-infinity", String),
            ("1.xe3", String),
            ("x.1", String),
            ("1.x", String),
            ("1e+", String),
            ("1ex", String),
            (".e3", String),
            ("+.inf", Float(f64::INFINITY)),
            (".inf", Float(f64::INFINITY)),
            ("-.INF", Float(f64::NEG_INFINITY)),
            ("-", String),
            ("--", String),
            ("1a", String),
            ("0x", String),
            ("1e", String),
            ("a", String),
            ("18446744073709551615", Int(u64::MAX as i128)),
            ("99999999999999999999", Float(1e20)),
        ] {
            assert_eq!(resolve(text), want, "{text:?}");
        }
        assert!(matches!(resolve(".nan"), Float(float) if float.is_nan()));
    }
}
