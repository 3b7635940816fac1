// Package knowledge finds what the agent should be told beside the user's
// words: instructions that always hold, microagents that a word in a message
// brings up, and skills, of which only a line is shown until one is asked for.
//
// It comes from four places, each of which may replace what those before it
// have under the same name: the program itself, the server's folder, the user's
// folder and the repository. A repository is written by people whom nobody here
// knows, so what it says is marked as its own, bounded in size, freed of
// characters that people do not see, and never more than text: nothing here
// runs anything or widens what is allowed. A file that is broken is told as a
// Problem and left out.
package knowledge
