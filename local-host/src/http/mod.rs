//! HTTP functions and the admin endpoint.

pub mod answer;
pub mod keys;
pub mod request;
pub mod route;
mod server;

pub(crate) use server::{Served, serve};
