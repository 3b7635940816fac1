package api

// SetTrust is the body of PUT …/trust.
type SetTrust struct {
	Trusted bool `json:"trusted" doc:"true adds the repository to your trusted repositories, false removes it. This conversation follows at once."`
}

// Trust says whether a conversation's repository is trusted. A conversation
// without a repository is.
type Trust struct {
	Repository *string `json:"repository" doc:"Host and path, as in /api/trusted-repositories; null without a repository."`
	Trusted    bool    `json:"trusted" doc:"Whether custom secrets reach the sandbox, and scripts of the repository may use the network."`
	Reason     *string `json:"reason" enum:"user,listed,push,read_only,unknown,outside" doc:"user: you said so here. listed: it is one of your trusted repositories. push: you can push to it. read_only: you cannot. unknown: the git provider does not say. outside: the conversation was started by somebody without write access, or for a pull request from a fork. null: not known yet, or no repository."`
}

// TrustedRepositories is the body of PUT /api/trusted-repositories, and answers GET and PUT.
type TrustedRepositories struct {
	Repositories []string `json:"repositories" maxItems:"1000" doc:"Repositories that you trust although you may not be able to push to them: host and path, such as github.com/octo/app. PUT replaces the list."`
}
