package api

import "encoding/json"

// Most requests consist of a few strings. They are copied from the object that the
// validator has decoded, instead of being decoded a second time.

// Plain fills the request from its decoded and validated object. It reports false if the
// object contains other objects.
func (c *CreateConversation) Plain(object map[string]any) bool {
	for name, value := range object {
		to := c.text(name)
		if to == nil {
			return false
		}
		switch v := value.(type) {
		case string:
			*to = Some(v)
		case nil:
			*to = Null[string]()
		default:
			return false
		}
	}
	return true
}

// text returns the string field with this name, or nil.
func (c *CreateConversation) text(name string) *Opt[string] {
	switch name {
	case "repository":
		return &c.Repository
	case "git_provider":
		return &c.GitProvider
	case "selected_branch":
		return &c.SelectedBranch
	case "initial_user_msg":
		return &c.InitialUserMsg
	case "replay_json":
		return &c.ReplayJSON
	case "conversation_instructions":
		return &c.ConversationInstructions
	case "conversation_id":
		return &c.ConversationID
	}
	return nil
}

// AppendJSON encodes the response by hand, because creating conversations is the most
// frequent request.
func (r ConversationResponse) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, `{"status":"`+r.Status+`","conversation_id":"`+r.ConversationID+`","message":`...)
	if r.Message == nil {
		b = append(b, "null"...)
	} else {
		text, err := json.Marshal(*r.Message)
		if err != nil {
			return nil, err
		}
		b = append(b, text...)
	}
	b = append(b, `,"conversation_status":`...)
	if r.ConversationStatus == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, `"`+*r.ConversationStatus+`"`...)
	}
	return append(b, '}'), nil
}
