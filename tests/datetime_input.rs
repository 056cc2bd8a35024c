//! What dates, times and intervals mean is what the server says: every text here goes to the
//! input functions of servers of all versions and to ours, under several sessions' settings,
//! and value or error must agree.
//!
//! The texts are those of `fixtures/datetime_input.txt`, chosen by hand, and some thousands
//! that a generator makes, the same in each run: shapes put together from parts, valid texts
//! with a few characters changed, and local times near the changes of many zones.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use pgformat::datum::datetime::{
    encode_date, encode_interval, encode_time, encode_timestamp, encode_timetz, interval_out,
    timestamptz_out, timetz_out,
};
use pgformat::version::MajorVersion;
use pgpagewrite::error::ValueError;
use pgpagewrite::types::datetime::{
    DateOrder, DateTimeSettings, IntervalStyle, ZoneDb, date_in, interval_in, time_in,
    timestamp_in, timestamptz_in, timetz_in,
};
use postgres::Transaction;
use support::Server;

/// A session's DateStyle, TimeZone and IntervalStyle.
type Session = (&'static str, &'static str, &'static str);

const SESSIONS: [Session; 9] = [
    ("ISO, MDY", "UTC", "postgres"),
    ("ISO, DMY", "Europe/Berlin", "sql_standard"),
    ("SQL, YMD", "America/New_York", "postgres_verbose"),
    ("German, DMY", "Asia/Kolkata", "iso_8601"),
    ("Postgres, MDY", "Australia/Lord_Howe", "sql_standard"),
    ("ISO, YMD", "Europe/Dublin", "postgres"),
    ("ISO, MDY", "<-03:30>+03:30", "postgres"),
    ("ISO, MDY", "FOO5BAR,M3.2.0,M11.1.0/3", "postgres"),
    // Its abbreviations are those that ISO 8601 uses otherwise.
    ("ISO, MDY", "T5Z", "postgres"),
];

const TYPES: [&str; 6] = [
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "interval",
];

/// Calls an input function, and says the value's bytes or the error, as [`said`] does.
const ANSWER_SQL: &str = r"
CREATE FUNCTION answer(type text, s text, typmod integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text; hint text;
BEGIN
  CASE type
    WHEN 'date' THEN RETURN encode(date_send(date_in(textout(s))), 'hex');
    WHEN 'time' THEN RETURN encode(time_send(time_in(textout(s), 0, typmod)), 'hex');
    WHEN 'timetz' THEN RETURN encode(timetz_send(timetz_in(textout(s), 0, typmod)), 'hex');
    WHEN 'timestamp' THEN
      RETURN encode(timestamp_send(timestamp_in(textout(s), 0, typmod)), 'hex');
    WHEN 'timestamptz' THEN
      RETURN encode(timestamptz_send(timestamptz_in(textout(s), 0, typmod)), 'hex');
    WHEN 'interval' THEN
      RETURN encode(interval_send(interval_in(textout(s), 0, typmod)), 'hex');
  END CASE;
EXCEPTION WHEN others THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
    detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN format('%s: %s|%s|%s', state, message, detail, hint);
END $$";

#[test]
fn texts_chosen_by_hand_mean_what_the_server_says() {
    let texts = chosen();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    support::each_version(&[], |server| {
        let mut check = Check::new(server);
        for session in SESSIONS {
            for type_name in TYPES {
                check.compare(session, type_name, &[-1], &texts);
            }
        }
        check.finish();
    });
}

#[test]
fn precision_rounds_as_the_server_rounds() {
    let texts = chosen();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    support::each_version(&[], |server| {
        let mut check = Check::new(server);
        let session = SESSIONS[1];
        for type_name in ["time", "timetz", "timestamp", "timestamptz"] {
            check.compare(session, type_name, &[0, 2, 5, 6, 7], &texts);
        }
        check.compare(session, "interval", &interval_typmods(), &texts);
        check.finish();
    });
}

#[test]
fn thousands_of_made_up_texts_mean_what_the_server_says() {
    support::each_version(&[], |server| {
        let mut check = Check::new(server);
        for (i, session) in SESSIONS.into_iter().enumerate() {
            let mut random = Random::new(i as u64);
            let mut texts: Vec<String> = Vec::new();
            texts.extend((0..500).map(|_| random.shape()));
            texts.extend((0..400).map(|_| random.fragments()));
            let chosen = chosen();
            texts.extend((0..800).map(|_| {
                let original = random.pick(&chosen).clone();
                random.spoil(&original)
            }));
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            for type_name in TYPES {
                check.compare(session, type_name, &[-1], &texts);
            }
            let intervals: Vec<String> = (0..800).map(|_| random.interval()).collect();
            let intervals: Vec<&str> = intervals.iter().map(String::as_str).collect();
            check.compare(session, "interval", &[-1], &intervals);
        }
        check.finish();
    });
}

#[test]
fn local_times_of_many_zones_are_the_instants_that_the_server_says() {
    support::each_version(&[], |server| {
        let mut check = Check::new(server);
        let zones = check.zone_names();
        let mut random = Random::new(1000);
        // By name in the text, at random times and in the hours of a change.
        let texts: Vec<String> = zones
            .iter()
            .flat_map(|zone| {
                (0..6)
                    .map(|_| format!("{} {zone}", random.local_time()))
                    .collect::<Vec<_>>()
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        check.compare(SESSIONS[0], "timestamptz", &[-1], &texts);
        check.compare(SESSIONS[0], "timetz", &[-1], &texts);
        // By abbreviation, in each set that the server comes with.
        for set in ["Default", "Australia", "India"] {
            check.use_abbreviations(set);
            let abbreviations = check.abbreviations();
            let texts: Vec<String> = abbreviations
                .iter()
                .flat_map(|abbreviation| {
                    (0..4)
                        .map(|_| format!("{} {abbreviation}", random.local_time()))
                        .chain([format!("04:05:06 {abbreviation}")])
                        .collect::<Vec<_>>()
                })
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let sessions = if set == "Default" { 5 } else { 1 };
            for session in &SESSIONS[..sessions] {
                check.compare(*session, "timestamptz", &[-1], &texts);
                check.compare(*session, "timetz", &[-1], &texts);
            }
        }
        check.use_abbreviations("Default");
        // In the session's zone; the shapes of the fast path.
        for zone in zones.iter().step_by(7) {
            let zone: &'static str = zone.clone().leak();
            let texts: Vec<String> = (0..60).map(|_| random.local_time()).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            check.compare(("ISO, MDY", zone, "postgres"), "timestamptz", &[-1], &texts);
        }
        check.finish();
    });
}

#[test]
fn values_are_shown_as_the_server_shows_them() {
    let texts = chosen();
    support::each_version(&[], |server| {
        let mut check = Check::new(server);
        let (settings, mut transaction) =
            check.session(("ISO, MDY", "America/New_York", "postgres"));
        let mut differences = String::new();
        let mut shown = 0;
        for text in &texts {
            let ours = [
                interval_in(text.as_bytes(), -1, &settings)
                    .map(|v| ("interval", interval_out(&v, settings.version))),
                timestamptz_in(text.as_bytes(), -1, &settings).map(|v| {
                    let unix_secs = v.div_euclid(1_000_000).saturating_add(946_684_800);
                    (
                        "timestamptz",
                        timestamptz_out(v, settings.zone.offset_at(unix_secs)),
                    )
                }),
                timetz_in(text.as_bytes(), -1, &settings)
                    .map(|(micros, zone)| ("timetz", timetz_out(micros, zone))),
            ];
            for (type_name, ours) in ours.into_iter().flatten() {
                let sql = format!("SELECT $1::text::{type_name}::text");
                let theirs: String = transaction.query_one(&sql, &[text]).unwrap().get(0);
                shown += 1;
                if ours != theirs {
                    let _ = writeln!(differences, "{type_name} {text:?}: {ours} / {theirs}");
                }
            }
        }
        assert!(shown > 500, "only {shown} values");
        assert!(
            differences.is_empty(),
            "ours / the server's:\n{differences}"
        );
    });
}

/// The texts of the fixture.
fn chosen() -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/datetime_input.txt");
    std::fs::read_to_string(path)
        .expect("the fixture")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// All fields that an interval can be restricted to, with and without precision.
fn interval_typmods() -> Vec<i32> {
    const YEAR: i32 = 1 << 2;
    const MONTH: i32 = 1 << 1;
    const DAY: i32 = 1 << 3;
    const HOUR: i32 = 1 << 10;
    const MINUTE: i32 = 1 << 11;
    const SECOND: i32 = 1 << 12;
    const FULL: i32 = 0x7fff;
    let mut typmods: Vec<i32> = [
        YEAR,
        MONTH,
        DAY,
        HOUR,
        MINUTE,
        SECOND,
        YEAR | MONTH,
        DAY | HOUR,
        DAY | HOUR | MINUTE,
        DAY | HOUR | MINUTE | SECOND,
        HOUR | MINUTE,
        HOUR | MINUTE | SECOND,
        MINUTE | SECOND,
    ]
    .map(|fields| fields << 16 | 0xffff)
    .to_vec();
    typmods.extend([0, 3, 6, 7].map(|precision| FULL << 16 | precision));
    typmods.extend([1, 4].map(|precision| (MINUTE | SECOND) << 16 | precision));
    // No set of fields that the grammar knows.
    typmods.push((YEAR | SECOND) << 16);
    typmods
}

/// Compares our answers with those of one server.
struct Check {
    client: postgres::Client,
    share_dir: PathBuf,
    zones: Arc<ZoneDb>,
    version: MajorVersion,
    compared: usize,
    differences: Vec<String>,
}

impl Check {
    fn new(server: &Server) -> Check {
        let mut client = server.connect("postgres");
        client.batch_execute(ANSWER_SQL).unwrap();
        let share_dir = PathBuf::from(server.value(
            "postgres",
            "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'",
        ));
        let abbreviations = server.value("postgres", "SHOW timezone_abbreviations");
        let zones = ZoneDb::open(&share_dir, &abbreviations).expect("the server's zones");
        Check {
            client,
            share_dir,
            zones: Arc::new(zones),
            version: MajorVersion::from_version_num(server.version() * 10_000).unwrap(),
            compared: 0,
            differences: Vec::new(),
        }
    }

    /// Takes other abbreviations, in all sessions from now on.
    fn use_abbreviations(&mut self, set: &str) {
        self.client
            .batch_execute(&format!("SET timezone_abbreviations = '{set}'"))
            .unwrap();
        let zones = ZoneDb::open(&self.share_dir, set).expect("the server's zones");
        self.zones = Arc::new(zones);
    }

    /// A transaction with a session's settings, and ours for it.
    fn session(&mut self, session: Session) -> (DateTimeSettings, Transaction<'_>) {
        let (date_style, zone, interval_style) = session;
        let mut transaction = self.client.transaction().unwrap();
        transaction
            .batch_execute(&format!(
                "SET LOCAL DateStyle = '{date_style}'; SET LOCAL TimeZone = '{zone}';
                 SET LOCAL IntervalStyle = '{interval_style}'"
            ))
            .unwrap();
        let row = transaction
            .query_one(
                "SELECT current_setting('DateStyle'), current_setting('IntervalStyle'),
                        current_setting('TimeZone'), encode(timestamptz_send(now()), 'hex')",
                &[],
            )
            .unwrap();
        let now_micros = i64::from_str_radix(row.get(3), 16).unwrap();
        let settings = DateTimeSettings::new(
            DateOrder::from_date_style(row.get(0)).unwrap(),
            IntervalStyle::from_setting(row.get(1)).unwrap(),
            self.zones.zone(row.get(2)).expect("the session's zone"),
            Arc::clone(&self.zones),
            now_micros,
            self.version,
        );
        (settings, transaction)
    }

    fn compare(&mut self, session: Session, type_name: &str, typmods: &[i32], texts: &[&str]) {
        let (settings, mut transaction) = self.session(session);
        let mut differences = Vec::new();
        for &typmod in typmods {
            let rows = transaction
                .query(
                    "SELECT answer($1, s, $2) FROM unnest($3::text[]) WITH ORDINALITY u(s, n)
                     ORDER BY n",
                    &[&type_name, &typmod, &texts],
                )
                .unwrap();
            assert_eq!(rows.len(), texts.len());
            for (text, row) in texts.iter().zip(&rows) {
                let theirs: &str = row.get(0);
                let ours = said(type_name, text.as_bytes(), typmod, &settings);
                if ours != theirs {
                    differences.push(format!(
                        "{type_name}({typmod:#x}) {session:?} {text:?}\n    ours:   {ours}\n    \
                         server: {theirs}"
                    ));
                }
            }
        }
        drop(transaction);
        self.compared += typmods.len() * texts.len();
        self.differences.append(&mut differences);
    }

    /// The names of the server's zones; links within the data are left out.
    fn zone_names(&mut self) -> Vec<String> {
        self.client
            .query(
                "SELECT name FROM pg_timezone_names
                 WHERE name !~ '^(posix|right|localtime)' ORDER BY name",
                &[],
            )
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect()
    }

    fn abbreviations(&mut self) -> Vec<String> {
        self.client
            .query(
                "SELECT DISTINCT abbrev FROM pg_timezone_abbrevs ORDER BY 1",
                &[],
            )
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect()
    }

    fn finish(self) {
        let count = self.differences.len();
        assert!(
            count == 0,
            "PostgreSQL {}: {count} of {} differ\n{}",
            self.version,
            self.compared,
            self.differences[..count.min(40)].join("\n")
        );
    }
}

/// What we say of a text: the value's bytes as the network sends them, or the error.
fn said(type_name: &str, text: &[u8], typmod: i32, settings: &DateTimeSettings) -> String {
    // On disk the numbers are little-endian.
    let hex = |bytes: &[u8], widths: &[usize]| {
        let mut out = String::new();
        let mut rest = bytes;
        for &width in widths {
            let (number, tail) = rest.split_at(width);
            for byte in number.iter().rev() {
                let _ = write!(out, "{byte:02x}");
            }
            rest = tail;
        }
        assert!(rest.is_empty());
        out
    };
    let result: Result<String, Box<ValueError>> = match type_name {
        "date" => date_in(text, settings).map(|v| hex(&encode_date(v), &[4])),
        "time" => time_in(text, typmod, settings).map(|v| hex(&encode_time(v), &[8])),
        "timetz" => timetz_in(text, typmod, settings)
            .map(|(micros, zone)| hex(&encode_timetz(micros, zone), &[8, 4])),
        "timestamp" => {
            timestamp_in(text, typmod, settings).map(|v| hex(&encode_timestamp(v), &[8]))
        }
        "timestamptz" => {
            timestamptz_in(text, typmod, settings).map(|v| hex(&encode_timestamp(v), &[8]))
        }
        "interval" => {
            interval_in(text, typmod, settings).map(|v| hex(&encode_interval(&v), &[8, 4, 4]))
        }
        other => unreachable!("{other}"),
    };
    result.unwrap_or_else(|e| {
        format!(
            "{}: {}|{}|{}",
            e.sqlstate,
            e.message,
            e.detail.unwrap_or_default(),
            e.hint.unwrap_or_default()
        )
    })
}

/// xorshift64*: the same numbers in each run, unless `DATETIME_INPUT_SEED` is set to another
/// number.
struct Random(u64);

impl Random {
    fn new(stream: u64) -> Random {
        let seed: u64 = std::env::var("DATETIME_INPUT_SEED").map_or(0, |text| {
            text.parse().expect("a number in DATETIME_INPUT_SEED")
        });
        let mut random = Random((seed << 16 | stream).wrapping_add(0x9e37_79b9_7f4a_7c15));
        for _ in 0..8 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 33) % limit
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    fn word(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len() as u64) as usize]
    }

    /// A local time in ISO shape: at any time of four centuries, or in the night hours of
    /// the months in which zones change.
    fn local_time(&mut self) -> String {
        let year = match self.below(5) {
            0 => 1840 + self.below(80),
            1 => 2036 + self.below(400),
            _ => 1900 + self.below(140),
        };
        let (month, day) = (1 + self.below(12), 1 + self.below(28));
        let (hour, minute) = if self.one_in(2) {
            (self.below(24), self.below(60))
        } else {
            (self.below(5), self.below(2) * 30)
        };
        let (month, day) = if self.one_in(2) {
            (*self.pick(&[3, 4, 9, 10, 11]), day)
        } else {
            (month, day)
        };
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:00")
    }

    fn number(&mut self) -> String {
        match self.below(8) {
            0 => self.below(10).to_string(),
            1 => format!("{:02}", self.below(70)),
            2 => format!("{:02}", self.below(32)),
            3 => format!("{:02}", self.below(13)),
            4 => (1900 + self.below(200)).to_string(),
            5 => format!("{:04}", self.below(2400)),
            6 => self.below(1_000_000).to_string(),
            _ => format!("{:06}", self.below(250_000)),
        }
    }

    fn zone(&mut self) -> String {
        match self.below(5) {
            0 => format!("{}{:02}", self.word(&["+", "-"]), self.below(17)),
            1 => format!(
                "{}{:02}{}{:02}",
                self.word(&["+", "-"]),
                self.below(16),
                self.word(&[":", ""]),
                self.below(61)
            ),
            2 => self
                .word(&[
                    "Z", "UTC", "PST", "pdt", "CET", "CEST", "MSK", "EST5EDT", "LMT", "BST", "IST",
                ])
                .to_owned(),
            3 => self
                .word(&[
                    "Europe/Berlin",
                    "america/new_york",
                    "Asia/Kolkata",
                    "Australia/Lord_Howe",
                    "Europe/Moscow",
                    "Etc/GMT+3",
                    "XYZ-3:30",
                    "ABC4DEF",
                    "No/Where",
                ])
                .to_owned(),
            _ => format!("{}{:04}", self.word(&["+", "-", " +"]), self.below(1700)),
        }
    }

    fn date(&mut self) -> String {
        let delimiter = self.word(&["-", "/", ".", " ", "-", ""]);
        let year = match self.below(4) {
            0 => format!("{:02}", self.below(100)),
            1 => self.below(12_000).to_string(),
            _ => format!("{:04}", 1800 + self.below(400)),
        };
        let month = match self.below(3) {
            0 => self
                .word(&["Jan", "feb", "MARCH", "Apr", "may", "Sept", "dec", "xyz"])
                .to_owned(),
            _ => format!("{:02}", self.below(14)),
        };
        let day = match self.below(6) {
            0 => self.below(33).to_string(),
            _ => format!("{:02}", 1 + self.below(31)),
        };
        let parts = match self.below(4) {
            0 => [day, month, year],
            1 => [month, day, year],
            _ => [year, month, day],
        };
        parts.join(delimiter)
    }

    fn time(&mut self) -> String {
        let mut time = match self.below(6) {
            0 => format!("{}:{}", self.below(25), self.below(61)),
            1 => format!("{:06}", self.below(250_000)),
            _ => format!(
                "{:02}:{:02}:{:02}",
                self.below(25),
                self.below(60),
                self.below(61)
            ),
        };
        if self.one_in(3) {
            let digits = 1 + self.below(9) as usize;
            let fraction = format!("{:09}", self.below(1_000_000_000));
            let _ = write!(time, ".{}", &fraction[..digits]);
        }
        if self.one_in(6) {
            time += self.word(&[" AM", " pm", "PM", "am"]);
        }
        time
    }

    /// A date, a time and a zone, each maybe missing, in an order that may make sense.
    fn shape(&mut self) -> String {
        let mut parts = Vec::new();
        if !self.one_in(4) {
            parts.push(self.date());
        }
        if !self.one_in(4) {
            parts.push(self.time());
        }
        if self.one_in(2) {
            parts.push(self.zone());
        }
        if self.one_in(10) {
            parts.push(self.word(&["BC", "AD", "Mon", "dst", "on", "T"]).to_owned());
        }
        if self.one_in(8) {
            parts.reverse();
        }
        let separator = self.word(&[" ", " ", " ", "", "T", "  ", ",", "t "]);
        parts.join(separator)
    }

    /// A few parts of any kind.
    fn fragments(&mut self) -> String {
        let mut out = String::new();
        for _ in 0..=self.below(5) {
            let part = match self.below(9) {
                0 => self.zone(),
                1 => self.date(),
                2 => self.time(),
                3 => self.number(),
                4 => format!(
                    "{}{}",
                    self.word(&["j", "y", "m", "d", "h", "mm", "s", "t"]),
                    { self.number() }
                ),
                5 => self
                    .word(&[
                        "epoch",
                        "now",
                        "today",
                        "infinity",
                        "allballs",
                        "am",
                        "pm",
                        "bc",
                        "ad",
                        "dst",
                        "t",
                        "j",
                        "at",
                        "sun",
                        "may",
                        "dow",
                        "yesterday",
                        "-infinity",
                    ])
                    .to_owned(),
                6 => self
                    .word(&["+", "-", ".", ":", "/", ",", "_", "@"])
                    .to_owned(),
                7 => format!("{}-{}", self.number(), self.number()),
                _ => format!("{}.{}", self.number(), self.number()),
            };
            out += &part;
            out += self.word(&["", " ", " ", "-", "T", "."]);
        }
        out
    }

    /// A text with one to three characters changed, put in, or taken out.
    fn spoil(&mut self, text: &str) -> String {
        const WITH: &[char] = &[
            '0', '1', '2', '5', '9', ' ', '-', '+', ':', '.', '/', 'T', 'Z', 'P', 'e', 'm', 'd',
            'x', ',', '\t', '\u{b}', 'é', '_', '<', '~', '\u{7f}',
        ];
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(3) {
            let at = self.below(chars.len() as u64 + 1) as usize;
            match self.below(3) {
                0 => chars.insert(at, *self.pick(WITH)),
                1 if at < chars.len() => chars[at] = *self.pick(WITH),
                _ if at < chars.len() => {
                    chars.remove(at);
                }
                _ => {}
            }
        }
        chars.into_iter().collect()
    }

    /// An interval in one of its forms.
    fn interval(&mut self) -> String {
        const UNITS: &[&str] = &[
            "us",
            "usecs",
            "ms",
            "milliseconds",
            "s",
            "sec",
            "seconds",
            "m",
            "min",
            "minutes",
            "h",
            "hours",
            "d",
            "day",
            "days",
            "w",
            "weeks",
            "mon",
            "months",
            "y",
            "years",
            "dec",
            "decades",
            "c",
            "century",
            "mil",
            "millennium",
            "ago",
            "foo",
            "quarter",
        ];
        let mut out = String::new();
        if self.one_in(4) {
            out.push('P');
            for _ in 0..self.below(5) {
                if self.one_in(3) {
                    out.push('T');
                }
                out += &self.amount();
                out += self.word(&["Y", "M", "W", "D", "H", "S", "-", ":", ""]);
            }
            return out;
        }
        for _ in 0..=self.below(4) {
            match self.below(6) {
                0 => out += &self.time(),
                1 => {
                    let sign = self.word(&["", "-", "+"]);
                    let _ = write!(out, "{sign}{}-{}", self.below(200), self.below(14));
                }
                2 => {
                    let sign = self.word(&["-", "+"]);
                    out += sign;
                    out += &self.time();
                }
                _ => {
                    out += &self.amount();
                    out.push(' ');
                    out += self.word(UNITS);
                }
            }
            out.push(' ');
        }
        if self.one_in(5) {
            out += "ago";
        }
        out
    }

    fn amount(&mut self) -> String {
        let sign = self.word(&["", "", "", "-", "+"]);
        let whole = match self.below(6) {
            0 => self.below(4_000_000_000).to_string(),
            1 => (self.next() >> self.below(60)).to_string(),
            2 => format!("{:08}", self.below(30_000_000)),
            _ => self.below(100).to_string(),
        };
        let fraction = if self.one_in(3) {
            let digits = 1 + self.below(8) as u32;
            format!(".{}", self.below(10_u64.pow(digits)))
        } else {
            String::new()
        };
        format!("{sign}{whole}{fraction}")
    }
}
