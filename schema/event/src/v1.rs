//! Version 1 of the log's formats.

pub mod adoption;
pub mod audience;
pub mod batch;
pub mod call;
pub mod change;
pub mod controller;
pub mod event;
pub mod former_cell;
pub mod given_client;
pub mod global_data;
pub mod image;
pub mod ledger;
pub mod movement_control;
pub mod sight;
pub mod space_data;
pub mod thinned;
pub mod value;
