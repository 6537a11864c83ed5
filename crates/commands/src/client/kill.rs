//! CLIENT KILL, in its old form (an address) and its new form (filters, all of which must match).

use super::list::ClientType;
use crate::context::Context;
use crate::{ClientFacts, Error};

/// The conditions a connection must meet to be closed.
struct Filter {
    id: Option<u64>,
    address: Option<Vec<u8>>,
    local_address: Option<Vec<u8>>,
    client_type: Option<ClientType>,
    /// Minimum age of the connection in seconds.
    age_seconds_min: u64,
    /// True if the calling connection is not closed.
    skip_this: bool,
}

impl Filter {
    fn fits(&self, client: &ClientFacts) -> bool {
        let same = |wanted: &Option<Vec<u8>>, is: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == is.as_bytes())
        };
        self.id.is_none_or(|id| id == client.id)
            && same(&self.address, &client.address)
            && same(&self.local_address, &client.local_address)
            && self.client_type.is_none_or(|wanted| wanted == ClientType::of(client))
            && client.age_seconds >= self.age_seconds_min
    }
}

pub(super) fn kill(context: &mut Context<'_>) -> Result<(), Error> {
    let old_form = context.args.len() == 3;
    let filter = if old_form { by_address(context) } else { by_filters(context)? };
    let mut killed = 0;
    for client in context.host.clients(context.session) {
        if !filter.fits(&client) {
            continue;
        }
        if client.id == context.session.id {
            if !filter.skip_this {
                context.session.closing = true;
                killed += 1;
            }
        } else if context.host.kill_client(client.id) {
            killed += 1;
        }
    }
    match (old_form, killed) {
        (true, 0) => return Err(Error::fixed("ERR No such client")),
        (true, _) => context.reply.ok(),
        (false, _) => context.reply.integer(killed),
    }
    Ok(())
}

const ANY: Filter = Filter {
    id: None,
    address: None,
    local_address: None,
    client_type: None,
    age_seconds_min: 0,
    skip_this: true,
};

fn by_address(context: &Context<'_>) -> Filter {
    Filter { address: Some(context.args.at(2).to_vec()), skip_this: false, ..ANY }
}

fn by_filters(context: &Context<'_>) -> Result<Filter, Error> {
    let args = context.args;
    let mut filter = ANY;
    for at in (2..args.len()).step_by(2) {
        let value = args.get(at + 1).ok_or(Error::SYNTAX)?;
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"id" => filter.id = Some(positive(value, "client-id should be greater than 0")?),
            b"type" => filter.client_type = Some(ClientType::parse(value)?),
            b"addr" => filter.address = Some(value.to_vec()),
            b"laddr" => filter.local_address = Some(value.to_vec()),
            b"user" if value == b"default" => {}
            b"user" => {
                let user = String::from_utf8_lossy(value);
                return Err(Error::new(format!("ERR No such user '{user}'")));
            }
            b"maxage" => {
                filter.age_seconds_min = positive(value, "maxage should be greater than 0")?;
            }
            b"skipme" if value.eq_ignore_ascii_case(b"yes") => filter.skip_this = true,
            b"skipme" if value.eq_ignore_ascii_case(b"no") => filter.skip_this = false,
            _ => return Err(Error::SYNTAX),
        }
    }
    Ok(filter)
}

fn positive(text: &[u8], otherwise: &str) -> Result<u64, Error> {
    resp::parse_integer(text)
        .and_then(|number| u64::try_from(number).ok())
        .filter(|number| *number > 0)
        .ok_or_else(|| Error::new(format!("ERR {otherwise}")))
}
