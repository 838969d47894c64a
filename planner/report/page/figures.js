// Times as people read them, with three digits.
const digits = (value) => value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
const seconds = (value) =>
  value >= 1 || value === 0 ? `${digits(value)} s`
    : value >= 1e-3 ? `${digits(value * 1e3)} ms` : `${digits(value * 1e6)} us`;
