/**
 * True if a text looks like an id. Where names and ids are both accepted, such a name could be taken for another
 * object's id.
 */
export const isUuid = (text: string): boolean => /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
