//! What tests share: Azurite and Python tools, installed into `target/` on first use.
