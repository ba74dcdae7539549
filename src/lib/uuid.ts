/**
 * True if a text looks like an id. Where both names and ids are accepted, such a name could be taken for the id of
 * another object.
 */
export const isUuid = (text: string): boolean => /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
