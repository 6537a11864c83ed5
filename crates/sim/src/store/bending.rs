//! Rules broken on purpose where frames come in: what would be refused is made to fit.

use cluster::data::Plane;
use cluster::replication::{Frame, slot_of_unit};
use store::{Recorded, Touch};

use super::Sabotage;
use super::plane::SimPlane;

/// Before this frame is taken in.
pub(super) fn bend_rules(sabotage: Option<Sabotage>, plane: &SimPlane, frame: &Frame<'_>) {
    match sabotage {
        Some(Sabotage::NoReignCheck) => forget_reign(plane, frame),
        Some(Sabotage::NoPositionCheck) => forget_position(plane, frame),
        _ => {}
    }
}

/// What a deposed primary sends is taken for that of the present one; a node that is primary itself
/// applies it, too.
fn forget_reign(plane: &SimPlane, frame: &Frame<'_>) {
    let Frame::Effects { reign, written_in, unit } = *frame else { return };
    let Some(slot) = slot_of_unit(unit) else { return };
    let Ok((recorded, _)) = Recorded::read(unit, plane.seed()) else { return };
    plane.with_slot(slot, |state| {
        if reign >= state.duty.reign {
            return;
        }
        if state.duty.is_primary() {
            let version = recorded.version.max(state.table.version());
            let _ = state.table.apply(&recorded.effect, version, Touch::Nothing, plane.seed());
        } else {
            state.duty.reign = reign;
            state.duty.written_in = written_in;
            state.table.advance_to(recorded.previous);
        }
    });
}

/// A copy is taken to be where it should be: it applies an effect on top of whatever it has, and agrees
/// with its new primary whatever that has.
fn forget_position(plane: &SimPlane, frame: &Frame<'_>) {
    if let Frame::Effects { written_in, unit, .. } = *frame {
        let Some(slot) = slot_of_unit(unit) else { return };
        let Ok((recorded, _)) = Recorded::read(unit, plane.seed()) else { return };
        plane.with_slot(slot, |state| {
            if state.table.version() < recorded.previous {
                state.duty.written_in = written_in;
                state.table.advance_to(recorded.previous);
            }
        });
    } else if let Frame::Compare { reign, slot, position } = *frame {
        plane.with_slot(slot, |state| {
            if reign == state.duty.reign && !state.duty.is_primary() {
                state.duty.written_in = position.reign;
                state.table.advance_to(position.version);
            }
        });
    }
}
