//! Which functions a condition calls, and whether they can tell when they are called.
//!
//! A function of initdb's that is stable answers the same within a transaction, but for a few that
//! read tables or tell the statement's time. One of a user is believed to be immutable when it is
//! declared so and its body, as far as it can be seen, reads nothing and calls nothing of a user.

use std::collections::{HashMap, HashSet};

use pgformat::ids::Oid;
use postgres::{GenericClient, Row};

use super::FIRST_NORMAL_OBJECT_ID;
use crate::error::Result;

/// What the condition of the constraint `k` calls, from its stored tree of nodes: whether it casts
/// to a domain, its functions, and the functions of its operators (as lists of numbers).
pub(super) const CALLED: &str = r"
       pg_catalog.strpos(k.conbin::text, '{COERCETODOMAIN ') > 0,
       ARRAY (SELECT m[1]::pg_catalog.oid
                FROM pg_catalog.regexp_matches(k.conbin::text,
                         E':(?:funcid|opfuncid) (\\d+)', 'g') m),
       ARRAY (SELECT coalesce(m[1], m[2])
                FROM pg_catalog.regexp_matches(k.conbin::text,
                         E':(?:opno (\\d+)|opnos \\(o ([\\d ]+)\\))', 'g') m)";

/// What a condition calls.
#[derive(Debug)]
pub(super) struct Called {
    casts_to_domain: bool,
    functions: Vec<Oid>,
    operators: Vec<Oid>,
}

impl Called {
    /// Reads the columns of [`CALLED`] from the number `first` on.
    pub fn of(row: &Row, first: usize) -> Called {
        let lists: Vec<String> = row.get(first + 2);
        let numbers = lists.iter().flat_map(|list| list.split_ascii_whitespace());
        Called {
            casts_to_domain: row.get(first),
            functions: row.get(first + 1),
            operators: numbers.filter_map(|n| n.parse().ok()).collect(),
        }
    }
}

/// Functions that can tell when they are called.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// Their names.
    names: HashMap<Oid, String>,
    /// The functions of operators.
    of_operators: HashMap<Oid, Oid>,
}

const OPERATORS: &str = "
SELECT oid, oprcode::pg_catalog.oid FROM pg_catalog.pg_operator WHERE oid = ANY ($1)";

const FUNCTIONS: &str = r"
SELECT p.oid, p.oid::pg_catalog.regprocedure::pg_catalog.text, p.oid::int8 < $2,
       p.provolatile::pg_catalog.text, p.proname ~ '_to_xml|^statement_timestamp$',
       l.lanname::pg_catalog.text,
       CASE WHEN p.oid::int8 >= $2
            THEN coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) END
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE p.oid = ANY ($1)";

/// The names of functions of users that may read anything.
const OF_USERS: &str = "
SELECT DISTINCT p.proname::pg_catalog.text
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE p.oid::int8 >= $1 AND l.lanname NOT IN ('c', 'internal')";

/// Words of a body that read tables or call what does.
const READS: [&str; 5] = ["from", "table", "perform", "execute", "call"];

impl Telling {
    /// Asks for all that these conditions call, at once.
    ///
    /// # Errors
    /// The server's.
    pub fn read(client: &mut impl GenericClient, all: &[Called]) -> Result<Telling> {
        if all.is_empty() {
            return Ok(Telling::default());
        }
        let operators: HashSet<Oid> = all.iter().flat_map(|c| c.operators.clone()).collect();
        let operators: Vec<Oid> = operators.into_iter().collect();
        let mut telling = Telling::default();
        for row in client.query(OPERATORS, &[&operators])? {
            telling.of_operators.insert(row.get(0), row.get(1));
        }
        let of_operators = telling.of_operators.values().copied();
        let functions = all.iter().flat_map(|c| c.functions.iter().copied());
        let functions: HashSet<Oid> = functions.chain(of_operators).collect();
        let functions: Vec<Oid> = functions.into_iter().collect();
        let mut of_users: Option<HashSet<String>> = None;
        for row in client.query(FUNCTIONS, &[&functions, &FIRST_NORMAL_OBJECT_ID])? {
            let volatility: &str = row.get(3);
            let body: Option<&str> = row.get(6);
            let tells = if row.get(2) {
                volatility == "v" || row.get(4)
            } else if volatility != "i" {
                true
            } else {
                match row.get(5) {
                    "c" | "internal" => false,
                    "sql" | "plpgsql" => {
                        let names = match &mut of_users {
                            Some(names) => names,
                            empty => empty.insert(names_of_users(client)?),
                        };
                        body.is_none_or(|body| may_read(body, names))
                    }
                    _ => true,
                }
            };
            if tells {
                telling.names.insert(row.get(0), row.get(1));
            }
        }
        Ok(telling)
    }

    /// Why a condition must be evaluated row by row as rows come in, as a phrase; `None` when it
    /// need not.
    pub fn reason(&self, called: &Called) -> Option<String> {
        if called.casts_to_domain {
            return Some("it has a cast to a domain".to_owned());
        }
        let operators = called.operators.iter();
        let of_operators = operators.filter_map(|o| self.of_operators.get(o));
        let functions = called.functions.iter().chain(of_operators);
        let first = functions.filter_map(|f| self.names.get(f)).min();
        first.map(|name| format!("it calls {name}"))
    }
}

fn names_of_users(client: &mut impl GenericClient) -> Result<HashSet<String>> {
    let rows = client.query(OF_USERS, &[&FIRST_NORMAL_OBJECT_ID])?;
    let names = rows.iter().map(|row| row.get::<_, &str>(0).to_lowercase());
    Ok(names.collect())
}

/// Whether a body reads tables, or names one of these functions (in lower case).
fn may_read(body: &str, functions: &HashSet<String>) -> bool {
    let body = body.to_lowercase();
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = body.split(|c| !is_of_word(c));
    if words.any(|word| READS.contains(&word) || functions.contains(word)) {
        return true;
    }
    let mut odd = functions
        .iter()
        .filter(|name| !name.chars().all(is_of_word));
    odd.any(|name| body.contains(name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_word_by_word() {
        let functions: HashSet<String> = ["f", "odd name"].map(str::to_owned).into();
        for (body, expected) in [
            ("select $1 + 1", false),
            ("SELECT g($1)", false),
            ("select a FROM t", true),
            ("select fromage", false),
            ("select F(1)", true),
            ("select my_f(1)", false),
            ("begin perform g(); end", true),
            ("select \"Odd Name\"(1)", true),
        ] {
            assert_eq!(may_read(body, &functions), expected, "{body}");
        }
    }
}
