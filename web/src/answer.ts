// What the server answers to somebody who asks it for something, as text.

// Throws what it says against it, for people.
export async function answerOf(path: string, request: RequestInit = {}): Promise<string> {
  let response: Response;
  try {
    response = await fetch(path, request);
  } catch {
    throw new Error("the server cannot be reached");
  }
  const text = (await response.text()).trim();
  if (response.ok) return text;
  throw new Error((JSON.parse(text) as { error: string }).error);
}
