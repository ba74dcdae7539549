/** Whether a request gives a node new content: by its bytes, or by reference to a version. */
export const isContentWrite = ({ method, path }: { readonly method: string; readonly path: string }): boolean =>
  method === "PUT" || (method === "POST" && path.endsWith("/versions"));
