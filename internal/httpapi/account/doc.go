// Package account serves what belongs to users: settings, custom secrets, keys and usage,
// and the users themselves, who are managed with admin keys.
package account
