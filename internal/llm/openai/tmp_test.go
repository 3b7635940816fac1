package openai

import (
	"fmt"
	"testing"

	"deckhand/internal/llm/llmtest"
)

func TestTmp(t *testing.T) {
	for _, body := range []string{
		sse(`5`, stop), sse(`"x"`, stop), sse(`[]`, stop), sse(`null`, stop), sse(`{}`, stop), sse(``, stop),
		sse(`{"error":null,"choices":[{"index":0,"delta":{"content":"hi"}}]}`, stop),
		sse(`{"choices":{"a":1}}`, stop), sse(`{"choices":null}`, stop), sse(`{"choices":[5,null,"x"]}`, stop),
		sse(delta(`null`), stop), sse(delta(`5`), stop), sse(delta(`{"content":["a"]}`), stop), sse(delta(`{"content":{"a":1}}`), stop),
		sse(delta(`{"content":5}`), stop), sse(delta(`{"content":true}`), stop), sse(delta(`{"Content":"x"}`), stop),
		sse(`{"choices":[{"index":"0","delta":{"content":"hi"}}]}`, stop), sse(`{"choices":[{"index":null,"delta":{"content":"hi"}}]}`, stop),
		sse(`{"choices":[{"index":"1","delta":{"content":"hi"}}]}`, stop), sse(`{"choices":[{"index":0.0,"delta":{"content":"hi"}}]}`, stop),
		sse(delta(`{"content":"x","tool_calls":{}}`), stop), sse(delta(`{"content":"x","tool_calls":[null]}`), stop), sse(delta(`{"content":"x","tool_calls":[5]}`), stop),
		sse(delta(`{"tool_calls":[{"index":"1","id":7,"function":{"name":"f","arguments":{"a": 1}}}]}`), stop),
		sse(delta(`{"tool_calls":[{"index":null,"id":null,"function":{"name":"f","arguments":null}}]}`), stop),
		sse(delta(`{"tool_calls":[{"index":1.0,"id":"a","function":"f"}]}`), stop),
		sse(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":[1]}}]}`), stop),
		sse(delta(`{"content":"x","reasoning":{"a":1}}`), stop), sse(delta(`{"content":"x","reasoning_details":{"a":1}}`), stop),
		sse(delta(`{"content":"x","reasoning_details":null}`), stop),
		sse(`{"choices":[],"usage":{"prompt_tokens":"3","completion_tokens":4.0,"prompt_tokens_details":null}}`),
		sse(`{"choices":[],"usage":{"prompt_tokens":3.5,"completion_tokens":1e2,"prompt_tokens_details":[]}}`),
		sse(`{"choices":[],"usage":[]}`), sse(`{"choices":[],"usage":5}`), sse(`{"choices":[],"usage":{}}`),
		sse(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":5}]}`), sse(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":""}]}`),
		sse(delta(`{"content":"a\ud800b\u00e4"}`), stop), sse(delta("{\"content\":\"\xff\"}"), stop), sse(delta(`{"content":"x","content":"y"}`), stop),
		"data: {\"choices\":\ndata: [{\"index\":0,\"delta\":{\"content\":\"two\"}}]}\n\n" + sse(stop),
		"data:" + delta(`{"content":"x"}`) + "\r\n\r\ndata:" + stop + "\r\n\r\n",
		"event: error\ndata: {\"message\":\"x\"}\n\n" + sse(stop), sse(delta(`{"content":"x"}`)) + "data: " + stop,
		sse(stop) + "data: {bad\n\n", sse(delta(`{"content":"x"}`)+` trailing`, stop), sse(`[DONE] x`),
		"data: " + delta(`{"content":"x"}`) + "\n" + "id: 4\nretry: 7\n\n" + sse(stop),
	} {
		s := llmtest.New(t, llmtest.Script(llmtest.Reply{Body: body}))
		h := listen(t.Context(), reach(t, s, llmtest.Chat, Options{Compatible: true}), hello())
		fmt.Printf("%q\n    text %q reasoning %q calls %s err %v", body, h.text, h.reasoning, h.calls, h.err)
		if h.done != nil {
			fmt.Printf(" done %+v raw %s", h.done.Usage, h.done.Raw)
		}
		fmt.Println()
	}
	for _, body := range []string{
		sse(`5`), sse(`null`), sse(`{"type":"error","message":5}`), sse(`{"type":"error","error":null,"message":"m"}`),
		sse(`{"type":"response.output_text.delta","delta":5}`, `{"type":"response.completed"}`),
		sse(`{"type":"response.output_text.delta","delta":{"a":1}}`, `{"type":"response.completed","response":null}`),
		sse(`{"type":"response.output_item.done","item":{"type":"function_call","call_id":5,"name":"f","arguments":{"a":1}}}`, `{"type":"response.completed","response":{"usage":null,"incomplete_details":null}}`),
		sse(`{"type":"response.output_item.done","item":5}`, `{"type":"response.completed","response":{"usage":{"input_tokens":"3","input_tokens_details":null}}}`),
		sse(`{"type":"response.reasoning_summary_part.added","summary_index":"1"}`, `{"type":"response.failed","response":{"error":null}}`),
		sse(`{"type":"response.reasoning_text.delta","delta":"x"}`, `{"type":"response.failed","response":{"error":"text"}}`),
		sse(`{"type":"response.output_item.done","item":{"type":"reasoning","id":"x","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"e","status":null}}`, `{"type":"response.output_item.done","item":{"type":"message"}}`, `{"type":"response.completed","response":{"usage":{"input_tokens":3}}}`),
		sse(`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`),
		sse(`[DONE]`), sse(`{"type":"error","message":"x","code":null}`), sse(`{"type":"error","message":"x","code":429}`),
	} {
		s := llmtest.New(t, llmtest.Script(llmtest.Reply{Body: body}))
		h := listen(t.Context(), reach(t, s, llmtest.Responses, Options{Compatible: true}), hello())
		fmt.Printf("%q\n    text %q reasoning %q calls %s err %v", body, h.text, h.reasoning, h.calls, h.err)
		if h.done != nil {
			fmt.Printf(" done %+v cut %v raw %s", h.done.Usage, h.done.Cut, h.done.Raw)
		}
		fmt.Println()
	}
}
