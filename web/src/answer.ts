// Asks the server for something, and gives its answer as text. Throws its words against it, for people.
export async function answerOf(path: string, request: RequestInit = {}): Promise<string> {
  let response: Response;
  try {
    response = await fetch(path, request);
  } catch {
    throw new Error("the server cannot be reached");
  }
  const text = (await response.text()).trim();
  if (response.ok) return text;
  throw new Error(errorIn(text) ?? `the server answers with status ${response.status}`);
}

// A proxy may answer in its place, in other words.
function errorIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error: string }).error;
  } catch {
    return undefined;
  }
}
