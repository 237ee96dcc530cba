// Sets the theme before the first paint: a classic script, so nothing is shown in the wrong colours.
(() => {
	const theme = localStorage.getItem("warren-theme");
	if (theme) document.documentElement.dataset.theme = theme;
})();
