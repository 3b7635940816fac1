package trigger

// Payload is for tests outside of the package.
var Payload = payload
