(() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const pixel = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const light = (colour) => { const [r, g, b] = pixel(colour).slice(0, 3).map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const contrast = (one, other) => { const [a, b] = [light(one), light(other)].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
    const below = (element) => { for (let at = element; at; at = at.parentElement) { const colour = getComputedStyle(at).backgroundColor; if (pixel(colour)[3] === 255) return colour; } return "Canvas"; };
    const found = [];
    let seen = 0;
    const check = (what, colour, behind, least) => { seen += 1; const ratio = contrast(colour, behind); if (ratio < least) found.push(`${what}: ${colour} on ${behind} is ${ratio.toFixed(2)}`); };
    for (const element of document.body.querySelectorAll("*")) {
        if (!element.checkVisibility()) continue;
        const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || element.matches("input, select, .copy");
        if (hasText) check(element.className || element.localName, getComputedStyle(element).color, below(element), 4.5);
        if (element.matches(".sign")) check("sign of " + element.className, getComputedStyle(element, "::before").backgroundColor, below(element.matches(".tag") ? element : element.parentElement), 3);
        if (element.matches("rect")) check("bar of " + element.className.baseVal, getComputedStyle(element).fill, below(element.closest(".card") ?? document.body), 3);
        if (element.matches("input, select")) check("border of " + element.localName, getComputedStyle(element).borderTopColor, below(element.parentElement), 3);
    }
    return { found: [...new Set(found)], seen };
})()
