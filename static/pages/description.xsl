<?xml version="1.0" encoding="utf-8"?>
<!-- Shows the description of an exchange or a queue (`GET /endpoint/x/NAME`) in a browser. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" encoding="utf-8" indent="yes"/>

  <xsl:template match="/application">
    <html lang="en">
      <head>
        <title><xsl:value-of select="description"/></title>
      </head>
      <body>
        <h1><xsl:value-of select="description"/></h1>
        <table>
          <tr><th>class</th><td><xsl:value-of select="class"/></td></tr>
          <tr><th>name</th><td><xsl:value-of select="name"/></td></tr>
          <xsl:for-each select="parameters/parameter">
            <tr><th><xsl:value-of select="@name"/></th><td><xsl:value-of select="@value"/></td></tr>
          </xsl:for-each>
        </table>
        <xsl:apply-templates select="facets/facet"/>
      </body>
    </html>
  </xsl:template>

  <xsl:template match="facet">
    <h2><xsl:value-of select="@name"/></h2>
    <p><xsl:value-of select="description"/></p>
    <xsl:apply-templates select="actions/action"/>
  </xsl:template>

  <xsl:template match="action">
    <h3>
      <xsl:value-of select="@name"/>: <xsl:value-of select="@http.method"/>
      <xsl:if test="@hub.mode"> hub.mode=<xsl:value-of select="@hub.mode"/></xsl:if>
    </h3>
    <p><xsl:value-of select="description"/></p>
    <xsl:if test="parameter">
      <table>
        <tr><th>parameter</th><th>in</th><th>default</th><th>meaning</th></tr>
        <xsl:apply-templates select="parameter"/>
      </table>
    </xsl:if>
  </xsl:template>

  <xsl:template match="parameter">
    <tr>
      <td><xsl:value-of select="@name"/></td>
      <td><xsl:value-of select="@location"/></td>
      <td>
        <xsl:choose>
          <xsl:when test="@optional = 'true'"><xsl:value-of select="@defaultvalue"/></xsl:when>
          <xsl:otherwise>(required)</xsl:otherwise>
        </xsl:choose>
      </td>
      <td><xsl:value-of select="description"/></td>
    </tr>
  </xsl:template>
</xsl:stylesheet>
