/**
 * Types that keep numbers apart which mean different things: `type InodeId = number & Brand<"InodeId">`. Such a number is
 * a number wherever one is taken, but no other number is taken for it, and none of another brand. Nothing of this is
 * there when the program runs.
 */

declare const brand: unique symbol;

export interface Brand<Name extends string> {
  readonly [brand]: Name;
}
