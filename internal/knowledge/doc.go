// Package knowledge finds text for the agent besides the user's messages: instructions
// that always apply, microagents that a word in a message triggers, and skills, which are
// listed by name until the agent asks for one.
//
// There are four sources, and each may replace entries of the previous ones by name: the
// program, the server's folder, the user's folder and the repository. A repository is
// untrusted, so its text is marked as such, limited in size and stripped of invisible
// characters. It is only ever text: nothing in this package runs code or extends
// permissions. An invalid file is reported as a Problem and ignored.
package knowledge
