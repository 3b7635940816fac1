// Package client is the Go SDK: create a conversation, send messages and follow its
// events. Of this module it imports only package api, the contract.
//
//	c := client.New("http://127.0.0.1:3000", key)
//	made, err := c.Create(ctx, api.CreateConversation{InitialUserMsg: api.Some("Fix the flaky test")})
//	for item, err := range c.Follow(ctx, made.ConversationID, 0) { … }
package client
