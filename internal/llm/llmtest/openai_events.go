package llmtest

// event is one event of a streamed response: the fields of all kinds together.
type event struct {
	Type         string           `json:"type"`
	Sequence     int              `json:"sequence_number"`
	Response     *responsesAnswer `json:"response,omitempty"`
	Item         *outputItem      `json:"item,omitempty"`
	Part         *outputPart      `json:"part,omitempty"`
	ItemID       string           `json:"item_id,omitempty"`
	OutputIndex  *int             `json:"output_index,omitempty"`
	ContentIndex *int             `json:"content_index,omitempty"`
	SummaryIndex *int             `json:"summary_index,omitempty"`
	Delta        string           `json:"delta,omitempty"`
	Text         *string          `json:"text,omitempty"`
	Arguments    *string          `json:"arguments,omitempty"`
}

// events collects the frames of a streamed response.
type events struct {
	reply  Reply
	frames []frame
	item   outputItem
	index  int
}

func (s *events) send(e event) {
	e.Sequence = len(s.frames)
	s.frames = append(s.frames, jsonFrame(e.Type, e))
}

// about sends an event that belongs to the current item.
func (s *events) about(e event) {
	e.ItemID, e.OutputIndex = s.item.ID, &s.index
	s.send(e)
}

func (w responsesWire) stream(a Asked, r Reply) []frame {
	s := &events{reply: r}
	whole := w.answer(a, r)
	begun := whole
	begun.Status, begun.Output, begun.Usage, begun.Incomplete = "in_progress", []outputItem{}, nil, nil
	s.send(event{Type: "response.created", Response: &begun})
	s.send(event{Type: "response.in_progress", Response: &begun})
	for i, item := range whole.Output {
		s.item, s.index = item, i
		s.output()
	}
	s.send(event{Type: "response." + whole.Status, Response: &whole})
	return s.frames
}

// output sends one item: as it begins, its contents, and as it ends.
func (s *events) output() {
	begun := s.item
	none := ""
	if begun.Status != "" {
		begun.Status = "in_progress"
	}
	begun.Encrypted = ""
	if begun.Content != nil {
		begun.Content = []outputPart{}
	}
	if begun.Summary != nil {
		begun.Summary = []outputPart{}
	}
	if begun.Arguments != nil {
		begun.Arguments = &none
	}
	s.send(event{Type: "response.output_item.added", OutputIndex: &s.index, Item: &begun})
	zero := 0
	switch s.item.Type {
	case "reasoning":
		s.text("response.reasoning_summary_part", "response.reasoning_summary_text", s.item.Summary[0], event{SummaryIndex: &zero})
	case "message":
		s.text("response.content_part", "response.output_text", s.item.Content[0], event{ContentIndex: &zero})
	case "function_call":
		for _, piece := range s.reply.fragments(*s.item.Arguments) {
			s.about(event{Type: "response.function_call_arguments.delta", Delta: piece})
		}
		s.about(event{Type: "response.function_call_arguments.done", Arguments: s.item.Arguments})
	}
	s.send(event{Type: "response.output_item.done", OutputIndex: &s.index, Item: &s.item})
}

// text sends a part with a text in it; at says where the part stands.
func (s *events) text(part, text string, p outputPart, at event) {
	empty := p
	empty.Text = ""
	with := func(kind string, change func(*event)) {
		e := at
		e.Type = kind
		change(&e)
		s.about(e)
	}
	with(part+".added", func(e *event) { e.Part = &empty })
	for _, piece := range s.reply.fragments(p.Text) {
		with(text+".delta", func(e *event) { e.Delta = piece })
	}
	with(text+".done", func(e *event) { e.Text = &p.Text })
	with(part+".done", func(e *event) { e.Part = &p })
}
