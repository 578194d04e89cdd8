//! Writers of model texts.
