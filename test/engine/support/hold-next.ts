/** A call on what is under test, stopped on its way: what is done meanwhile comes between. */

/** The next call waits until it is let go: before it does anything, or when it has. Later ones do not wait. */
export function holdNext<K extends string>(
  target: { [key in K]: (...args: never[]) => Promise<unknown> },
  name: K,
  when: "before" | "after" = "before",
) {
  const original = target[name];
  let isReached = false;
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  Object.assign(target, {
    async [name](...args: never[]) {
      if (isReached) return original.apply(target, args);
      isReached = true;
      const result = when === "after" ? await original.apply(target, args) : undefined;
      await held;
      return when === "after" ? result : original.apply(target, args);
    },
  });
  return { isReached: () => isReached, goOn };
}
