package v0

// Protocol lists the fields of events and statuses that clients go by, as paths with
// dots between the names; arrays are passed over. A secret that happens to be the same
// word must not be masked in them.
func Protocol() []string {
	return []string{
		"id", "timestamp", "source", "cause", "action", "observation", "type",
		"args.agent", "args.agent_class", "args.confirmation_state", "args.impl_source", "args.name", "args.recall_type",
		"args.agent_state", "args.task_list.id", "args.task_list.status",
		"args.tools.type", "args.tools.function.name", "args.tools.function.parameters",
		"extras.agent_state", "extras.error_id", "extras.focused_element_bid", "extras.impl_source", "extras.name",
		"extras.recall_type", "extras.task_list.id", "extras.task_list.status", "extras.trigger_by_action",
		pathMetadata + ".function_name", pathMetadata + ".tool_call_id",
		pathResponse + ".id", pathResponse + ".model", pathResponse + ".object", pathResponse + ".choices.finish_reason",
		pathResponse + ".choices.message.role", pathCalls + ".id", pathCalls + ".type", pathCalls + ".function.name",
		"llm_metrics.accumulated_token_usage.model", "llm_metrics.accumulated_token_usage.response_id",
	}
}

const (
	pathMetadata = "tool_call_metadata"
	pathResponse = pathMetadata + ".model_response"
	pathCalls    = pathResponse + ".choices.message.tool_calls"
)

// FreeForm lists the fields whose content has names that others choose: they are text.
func FreeForm() []string {
	return []string{"args.arguments", "args.inputs", "args.outputs", "extras.arguments", "extras.outputs",
		"extras.dom_object", "extras.axtree_object", "extras.extra_element_properties"}
}

// Coded lists the fields that hold JSON as a string.
func Coded() []string { return []string{pathCalls + ".function.arguments"} }
