package api

import "encoding/json"

// What most requests consist of is a few texts. These are taken over from the
// object that the validator has looked at already, instead of being decoded a
// second time.

// Plain fills the request from its decoded and validated object, and reports
// whether that was possible: it is not when there are objects inside.
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

// text is the field of this name, nil when there is none or it is no text.
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

// AppendJSON writes the answer to a creation by hand: it is the same few fields
// each time, and the request that counts most.
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
