/** Whether a text is like an id. A name that is would stand for somebody else wherever both are taken. */
export const isUuid = (text: string): boolean => /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
