/**
 * Whether a text looks like an id. A name that looks so could be taken for another thing's id wherever both are
 * accepted.
 */
export const isUuid = (text: string): boolean => /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
