/**
 * Types that keep numbers of different meaning apart: `type InodeId = number & Brand<"InodeId">`. Such a value can be
 * used as a number, but neither a plain number nor one of another brand can be used as it. At run time nothing of this
 * exists.
 */

declare const brand: unique symbol;

export interface Brand<Name extends string> {
  readonly [brand]: Name;
}
