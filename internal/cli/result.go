package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// Ended is the end of a task.
type Ended struct {
	Code int
	// Finished is true if the agent said that the task is done.
	Finished bool
	// Reason is why the task failed, "" if the exit code says all.
	Reason string
	ID     string
	Totals session.Totals
	Took   time.Duration
	// DataDir is the data directory of a kept conversation, and Reopen says how to open it.
	DataDir, Reopen string
	// Answer is the final answer, if a schema was given and it matches.
	Answer json.RawMessage
}

// result is the last line of --json.
type result struct {
	Result   string          `json:"result"`
	ExitCode int             `json:"exit_code"`
	Reason   string          `json:"reason,omitempty"`
	ID       string          `json:"conversation_id"`
	Input    int64           `json:"input_tokens"`
	Output   int64           `json:"output_tokens"`
	CostUSD  float64         `json:"cost_usd"`
	Seconds  float64         `json:"seconds"`
	DataDir  string          `json:"data_dir,omitempty"`
	Answer   json.RawMessage `json:"output,omitempty"`
}

var outcomes = map[int]string{ExitDone: "done", ExitError: "error", ExitLimit: "limit reached", ExitRejected: "rejected", ExitStuck: "stuck", ExitSchema: "invalid answer", ExitInterrupted: "interrupted"}

// reasons are the reasons of exit codes that the log does not explain.
var reasons = map[int]string{ExitRejected: "a tool call was rejected, or needed approval without a terminal to ask on", ExitInterrupted: "interrupted by Ctrl-C, a signal, or a closed output"}

// Print prints the result: as JSON, or as a summary and the final answer.
func (e Ended) Print(o *Output, asJSON bool, d *terminal.Display) error {
	word := outcomes[e.Code]
	if e.Code == ExitDone && e.Finished {
		word = "finished"
	}
	if asJSON {
		if why, ok := reasons[e.Code]; ok {
			e.Reason = why
		}
		return terminal.PrintJSON(o.Stdout, result{Result: word, ExitCode: e.Code, Reason: e.Reason, ID: e.ID, Input: e.Totals.Input, Output: e.Totals.Output, CostUSD: e.Totals.Cost.Dollars(), Seconds: e.Took.Seconds(), DataDir: e.DataDir, Answer: e.Answer})
	}
	d.Summary(word, e.Totals, e.Took)
	if e.Reopen != "" {
		d.Notice("kept as conversation " + e.ID + "; " + e.Reopen)
	}
	if e.Answer == nil {
		return nil
	}
	_, err := fmt.Fprintf(o.Answer, "%s\n", e.Answer)
	return err
}
