//! Suggestions for defaults that do not fit.

use crate::{
    check::Problem,
    data_type::{DataType, FixedDict},
    notation,
};

/// Maximum bytes of a text that a suggestion shows in base 64.
const MAX_SHOWN_BYTES: usize = 48;

/// Maximum parts that a suggestion writes out: elements of a list, names of fields.
const MAX_SHOWN_PARTS: usize = 6;

/// The integer types from narrow to wide, unsigned ones first, each with its minimum and maximum.
const INTEGERS: [(DataType, i128, i128); 8] = [
    (DataType::UInt8, 0, u8::MAX as i128),
    (DataType::Int8, i8::MIN as i128, i8::MAX as i128),
    (DataType::UInt16, 0, u16::MAX as i128),
    (DataType::Int16, i16::MIN as i128, i16::MAX as i128),
    (DataType::UInt32, 0, u32::MAX as i128),
    (DataType::Int32, i32::MIN as i128, i32::MAX as i128),
    (DataType::UInt64, 0, u64::MAX as i128),
    (DataType::Int64, i64::MIN as i128, i64::MAX as i128),
];

/// The suggestion for a text that is not an integer of this type.
pub(super) fn of_integer(data_type: &DataType, text: &str) -> String {
    let known = INTEGERS.iter().find(|(known, ..)| known == data_type);
    let Some(&(_, low, high)) = known else {
        return format!("write a value of type {data_type}");
    };
    if let Some(number) = notation::integer(text) {
        return within(number, low, high);
    }
    let range = format!("write a whole number from {low} to {high}");
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" => "write `1`, or `0` for no".to_owned(),
        "no" | "off" => "write `0`, or `1` for yes".to_owned(),
        text if notation::number::<f64>(text).is_some() => format!("{range}, or use the type FLOAT32"),
        _ => range,
    }
}

/// The suggestion for a number out of range: the nearest number in range, or a type whose range contains the number and
/// that of the declared type.
fn within(number: i128, low: i128, high: i128) -> String {
    let bound = match number < low {
        true => format!("write {low} or more"),
        false => format!("write {high} or less"),
    };
    let (least, greatest) = (low.min(number), high.max(number));
    let wider = INTEGERS
        .iter()
        .find(|(_, low, high)| *low <= least && *high >= greatest);
    match wider {
        Some((wider, ..)) => format!("{bound}, or use the type {wider}"),
        None => bound,
    }
}

/// The suggestion for a text that is not a number.
pub(super) fn of_number(text: &str) -> String {
    let better = text.replacen(',', ".", 1);
    let better = better.trim_end_matches(['f', 'F']).trim();
    match notation::number::<f64>(better) {
        Some(_) => format!("write `{better}`"),
        None => "write a finite number with a point before its fraction, as in `1.5`".to_owned(),
    }
}

/// The suggestion for a text that is not a vector of `count` numbers.
pub(super) fn of_vector(count: usize, text: &str) -> String {
    let example = ["1", "2.5", "0", "-4"][..count.min(4)].join(" ");
    let form = format!("write {count} numbers, as in `{example}`");
    let is_other = match count {
        2 => notation::vector::<3>(text)
            .map(|_| "VECTOR3")
            .or(notation::vector::<4>(text).map(|_| "VECTOR4")),
        3 => notation::vector::<2>(text)
            .map(|_| "VECTOR2")
            .or(notation::vector::<4>(text).map(|_| "VECTOR4")),
        _ => notation::vector::<2>(text)
            .map(|_| "VECTOR2")
            .or(notation::vector::<3>(text).map(|_| "VECTOR3")),
    };
    match is_other {
        Some(other) => format!("{form}, or use the type {other}"),
        None => form,
    }
}

/// The suggestion where KBEngine expects a vector with commas.
pub(super) fn with_commas(text: &str) -> String {
    let words = || text.split_whitespace().filter(|word| !word.contains(['(', ')', ',']));
    match words().count() {
        2..=4 => format!("write `{}`", words().collect::<Vec<_>>().join(", ")),
        _ => "write the numbers with commas between them, as in `1, 2.5, 0`".to_owned(),
    }
}

/// The suggestion where KBEngine expects a literal of exactly the type.
pub(super) fn for_kbengine(data_type: &DataType) -> String {
    match data_type {
        DataType::Array(_) | DataType::Tuple(_) | DataType::FixedDict(_) => {
            "write it in Python, with values of exactly the type: `1.0` for a float, quotes around text".to_owned()
        }
        _ => "write a decimal number in the range of the type".to_owned(),
    }
}

/// The suggestion for a text that is not base 64.
pub(super) fn of_blob(text: &str) -> String {
    if text.len() > MAX_SHOWN_BYTES {
        return "write the bytes in base 64, or use the type STRING".to_owned();
    }
    let meant = notation::to_base64(text.as_bytes());
    format!("the bytes of this text are `{meant}` in base 64; for text there is the type STRING")
}

/// The suggestion for a text that is not a list: its parts as elements, if they can be separated.
pub(super) fn of_list(text: &str) -> String {
    let brackets = ['[', ']', '(', ')'];
    let inner = text.trim_matches(brackets);
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let is_plain = |part: &&str| !part.is_empty() && !part.contains(brackets) && !part.contains(['\'', '"']);
    if parts.len() > MAX_SHOWN_PARTS || !parts.iter().all(is_plain) {
        return "write `<item> value </item>` for each element".to_owned();
    }
    let items: Vec<String> = parts.iter().map(|part| format!("<item> {part} </item>")).collect();
    format!("write `{}`", items.join(" "))
}

/// The suggestion for the value of a FIXED_DICT.
pub(super) fn of_dict(dict: &FixedDict) -> String {
    format!(
        "write `<field> value </field>` for each field that differs; {}",
        fields_of(dict)
    )
}

/// The names of the fields of a FIXED_DICT.
pub(super) fn fields_of(dict: &FixedDict) -> String {
    let names: Vec<&str> = dict
        .fields
        .iter()
        .take(MAX_SHOWN_PARTS)
        .map(|field| field.name.as_str())
        .collect();
    let more = match dict.fields.len() > MAX_SHOWN_PARTS {
        true => ", …",
        false => "",
    };
    match names.as_slice() {
        [only] => format!("its only field is {only}"),
        _ => format!("its fields are {}{more}", names.join(", ")),
    }
}

/// The suggestion for a value of the right form that does not fit.
pub(super) fn of_problem(problem: &Problem) -> String {
    match problem {
        Problem::Range { found, low, high, .. } => within(*found, *low, *high),
        Problem::Size { wanted, found } => {
            let wanted = *wanted as usize;
            let change = match *found < wanted {
                true => format!("add {}", wanted - *found),
                false => format!("remove {}", *found - wanted),
            };
            format!("{change}, or change the `<size>` of the type")
        }
        Problem::TooLong { limit, .. } => format!("write no more than {limit}"),
        Problem::Kind { wanted, .. } => format!("write a value of type {wanted}"),
        Problem::FieldCount { .. } => "write `<field> value </field>` for each field that differs".to_owned(),
        Problem::NoneNotAllowed => {
            "remove the `<Default>`, or add `<AllowNone> true </AllowNone>` to the type".to_owned()
        }
    }
}
