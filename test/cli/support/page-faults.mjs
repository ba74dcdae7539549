/** Evaluated in a page of a browser: what there is in it, and what keeps somebody from reading or using it. */
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const nameOf = (element) => `${element.tagName} ${element.id || element.textContent.trim()}`;
  const controls = all("button, select, a, input:not([type=hidden])");
  const fields = controls.filter(({ tagName }) => ["INPUT", "SELECT"].includes(tagName));

  // As WCAG 2.2 reckons contrast.
  const partsOf = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const linear = (value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const behind = (element) => {
    const parts = element === null ? [255, 255, 255] : partsOf(getComputedStyle(element).backgroundColor);
    return parts[3] === 0 ? behind(element.parentElement) : parts;
  };
  const contrast = (color, element) => {
    const [dark, light] = [luminance(partsOf(color)), luminance(behind(element))].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const ownText = ({ childNodes }) => [...childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
  const isFocusFaint = (element) => {
    element.focus({ focusVisible: true });
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element);
    return (
      outlineStyle === "none" ||
      Number.parseFloat(outlineWidth) < 2 ||
      contrast(outlineColor, element.parentElement) < 3
    );
  };

  return {
    language: document.documentElement.lang,
    title: document.title,
    headings: all("h1").map(({ textContent }) => textContent),
    width: document.documentElement.scrollWidth,
    faults: {
      low: controls.filter((one) => one.getBoundingClientRect().height < 24).map(nameOf),
      unlabelled: fields.filter(({ labels }) => labels.length === 0).map(nameOf),
      faintText: all("main *")
        .filter((one) => ownText(one) && contrast(getComputedStyle(one).color, one) < 4.5)
        .map(nameOf),
      faintEdges: fields
        .filter(
          (one) => one.type !== "checkbox" && contrast(getComputedStyle(one).borderTopColor, one.parentElement) < 3,
        )
        .map(nameOf),
      faintFocus: controls.filter(isFocusFaint).map(nameOf),
      errorsOfNothing: all("[role=alert]")
        .filter(({ id }) => id === "" || document.querySelector(`[aria-describedby~="${id}"]`) === null)
        .map(nameOf),
      scripts: all("script, [onclick], [onload]").map(nameOf),
    },
  };
})();
